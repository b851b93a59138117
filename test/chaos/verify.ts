import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import type { ChaosFleet, ChaosWorker } from "./fleet.ts";
import { listProcesses } from "./processes.ts";
import { tickRepository, type Ticking } from "./automations.ts";
import type { LoopEvent } from "./loop.ts";
import type { Accepted } from "./requests.ts";
import { brokenLoop, findLoop } from "./verify-loop.ts";

const run = promisify(execFile);

interface SessionRow {
  id: string;
  job_id: string | null;
  event_id: string | null;
  trigger_id: string | null;
  status: string;
  branch_name: string;
  failure: unknown;
  worker: string | null;
}

/** What is looked at of a fleet. */
export type LookedAt = Pick<ChaosFleet, "folder" | "forge" | "store"> & {
  readonly workers: readonly Pick<ChaosWorker, "data">[];
  /** Time in which what was killed has to be gone, in ms; 20 s if omitted: on a busy machine the kernel takes a while to end a sandbox. */
  readonly dyingMs?: number;
};

/** @returns one sentence for each promise that was broken */
export async function brokenPromises(
  fleet: LookedAt,
  accepted: readonly Accepted[],
  ticking: Ticking & { readonly pausedAt: string | null },
  loop: readonly LoopEvent[],
): Promise<string[]> {
  const { rows } = await fleet.store.query<SessionRow>(
    `select session.id, job_id, event_id, trigger_id, session.status, branch_name, failure, session.worker
     from session left join job on job.id = job_id`,
  );
  return [
    ...checkSessions(
      rows.filter((row) => row.trigger_id !== ticking.triggerId),
      accepted,
    ),
    ...(await checkJobs(fleet, accepted, ticking)),
    ...(await checkTicks(fleet, rows, ticking)),
    ...(await checkPullRequests(fleet, rows, accepted, loop)),
    ...brokenLoop(loop, await findLoop(fleet, [...new Set(accepted.map(({ repository }) => repository))])),
    ...(await checkEvents(fleet)),
    ...(await checkLeftovers(fleet)),
  ];
}

const sessionOf = (rows: readonly SessionRow[], { kind, id }: Accepted): SessionRow | undefined =>
  rows.find((row) => id === { session: row.id, trigger: row.job_id, webhook: row.job_id, event: row.event_id }[kind]);

function checkSessions(rows: readonly SessionRow[], accepted: readonly Accepted[]): string[] {
  const broken: string[] = [];
  for (const work of accepted) {
    const session = sessionOf(rows, work);
    if (session === undefined) broken.push(`${work.kind} ${work.id} was accepted and has no session`);
    else if (session.status !== "completed") {
      broken.push(`session ${session.id} is ${session.status}: ${JSON.stringify(session.failure)}`);
    }
    if (session?.worker != null) broken.push(`session ${session.id} is still held by ${session.worker}`);
  }
  if (rows.length !== accepted.length)
    broken.push(`${accepted.length} were accepted, and there are ${rows.length} sessions`);
  return broken;
}

async function checkJobs(fleet: LookedAt, accepted: readonly Accepted[], ticking: Ticking): Promise<string[]> {
  const { rows: all } = await fleet.store.query<{ id: string; status: string; sessions: number; trigger: string }>(
    `select job.id, job.status, trigger_id as trigger, (select count(*)::integer from session where job_id = job.id) as sessions from job`,
  );
  const rows = all.filter(({ trigger }) => trigger !== ticking.triggerId);
  const triggers = accepted.filter(({ kind }) => kind !== "session");
  const broken = rows
    .filter(({ status, sessions }) => status !== "completed" || sessions !== 1)
    .map(({ id, status, sessions }) => `job ${id} is ${status} with ${sessions} sessions`);
  if (rows.length !== triggers.length)
    broken.push(`${triggers.length} triggers were accepted, and there are ${rows.length} jobs`);
  return broken;
}

/** Each minute between the schedule's creation and its pause has one run, with one pull request. */
async function checkTicks(
  fleet: LookedAt,
  sessions: readonly SessionRow[],
  { triggerId, pausedAt }: Ticking & { readonly pausedAt: string | null },
): Promise<string[]> {
  const { rows: spans } = await fleet.store.query<{ ticks: string[] }>(
    `select array(select to_char(tick at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
         from generate_series(date_trunc('minute', created_at) + interval '1 minute', $2::timestamptz, interval '1 minute') as tick) as ticks
     from trigger where id = $1`,
    [triggerId, pausedAt],
  );
  const { rows: jobs } = await fleet.store.query<{ id: string; tick: string; status: string }>(
    `select id, payload ->> 'scheduledAt' as tick, status from job where trigger_id = $1 order by 2`,
    [triggerId],
  );
  const ran = jobs.map(({ tick }) => tick).join();
  const expected = (spans[0]?.ticks ?? []).join();
  const broken =
    ran === expected && ran !== "" ? [] : [`the schedule's ticks were ${expected}, and its runs are of ${ran}`];
  const pulls = await fleet.forge.pullRequests("acme", tickRepository);
  for (const { id, tick, status } of jobs) {
    const own = sessions.filter(({ job_id }) => job_id === id);
    const opened = pulls.filter(({ head }) => own.some(({ branch_name }) => branch_name === head));
    if (own.length !== 1 || opened.length !== 1 || status !== "completed" || own[0]?.status !== "completed") {
      broken.push(
        `the job of the tick of ${tick} is ${status}, its sessions are [${own.map((each) => each.status).join()}], with ${opened.length} pull requests`,
      );
    }
  }
  if (pulls.length !== jobs.length) broken.push(`${jobs.length} ticks have ${pulls.length} pull requests`);
  return broken;
}

async function checkPullRequests(
  fleet: LookedAt,
  rows: readonly SessionRow[],
  accepted: readonly Accepted[],
  loop: readonly LoopEvent[],
): Promise<string[]> {
  const broken: string[] = [];
  for (const repository of new Set(accepted.map((work) => work.repository))) {
    const pulls = await fleet.forge.pullRequests("acme", repository);
    const here = accepted.filter((work) => work.repository === repository);
    if (pulls.length !== here.length) {
      broken.push(`${repository} has ${pulls.length} pull requests for ${here.length} sessions`);
    }
    for (const work of here) {
      const session = sessionOf(rows, work);
      const branch = session?.branch_name ?? "";
      const asked = loop.filter(({ sessionId }) => sessionId === session?.id);
      const own = pulls.filter(({ head }) => head === branch);
      if (own.length !== 1) broken.push(`${branch} of ${repository} has ${own.length} pull requests`);
      broken.push(...(await checkContent(fleet, work, branch, asked)));
    }
  }
  return broken;
}

/**
 * Exactly the files that the agent was asked to write, by its prompt and on its pull request, as the forge has them.
 */
async function checkContent(
  fleet: LookedAt,
  work: Accepted,
  branch: string,
  asked: readonly LoopEvent[],
): Promise<string[]> {
  const show = async (...parameters: string[]): Promise<string> =>
    (await run("git", ["-C", fleet.forge.pathOf("acme", work.repository), ...parameters])).stdout.trim();
  const orders = [work, { file: `more-${work.number}.txt`, content: "more" }, ...asked];
  try {
    const changed = (await show("diff", "--name-only", `main...${branch}`)).split("\n").toSorted();
    const expected = orders.map(({ file }) => file).toSorted();
    if (changed.join() !== expected.join())
      return [`${branch} of ${work.repository} has ${changed.join(", ")} instead of ${expected.join(", ")}`];
    const broken: string[] = [];
    for (const { file, content } of orders) {
      const found = await show("show", `${branch}:${file}`);
      if (found !== content) broken.push(`${file} on ${branch} of ${work.repository} has ${JSON.stringify(found)}`);
    }
    return broken;
  } catch (error) {
    return [`${branch} of ${work.repository} can't be read: ${String(error)}`];
  }
}

/** Numbered from 1 without a gap, and never two ends in a row. */
async function checkEvents({ store }: LookedAt): Promise<string[]> {
  const { rows: gaps } = await store.query<{ id: string; count: string; last: string }>(
    "select session_id as id, count(*), max(seq) as last from event group by session_id having count(*) <> max(seq)",
  );
  const { rows: ends } = await store.query<{ id: string; seq: string; to: string; before: string }>(
    `select * from (
       select session_id as id, seq, data ->> 'to' as to, lag(data ->> 'to') over (partition by session_id order by seq) as before
       from event where type = 'session.status') moves
     where moves.to in ('completed', 'failed', 'cancelled') and before in ('completed', 'failed', 'cancelled')`,
  );
  return [
    ...gaps.map(({ id, count, last }) => `session ${id} has ${count} events up to number ${last}`),
    ...ends.map(({ id, seq, to, before }) => `session ${id} is ${to} by its event ${seq}, and was ${before} before`),
  ];
}

/** What still runs of the fleet, once what was killed is gone. */
async function remainingProcesses(fleet: LookedAt): Promise<ReturnType<typeof listProcesses>> {
  for (const until = performance.now() + (fleet.dyingMs ?? 20_000); ; await pause(250)) {
    // git gets the forge's address, and not its folder.
    const found = listProcesses().filter(
      ({ command }) =>
        (command.includes(fleet.folder) || command.includes(fleet.forge.url)) && !command.includes("/bin/postgres"),
    );
    if (found.length === 0 || performance.now() > until) return found;
  }
}

/**
 * After every node was asked to stop: nothing runs, no lock is held, and each folder belongs to something that exists.
 */
async function checkLeftovers(fleet: LookedAt): Promise<string[]> {
  const processes = await remainingProcesses(fleet);
  const { rows: locks } = await fleet.store.query<{ objid: string }>(
    `select objid from pg_locks where locktype = 'advisory' and objid <> 4747001
       and database = (select oid from pg_database where datname = current_database())`,
  );
  const { rows: sessions } = await fleet.store.query<{ id: string }>("select id from session");
  const known = new Set(sessions.map(({ id }) => id));
  const broken = [
    ...processes.map(({ pid, command }) => `process ${pid} is still there: ${command.slice(0, 4_000)}`),
    ...locks.map(({ objid }) => `the lock ${objid} is still held`),
  ];
  for (const { data } of fleet.workers) {
    const mirrors = await readdir(join(data, "mirrors"), { recursive: true }).catch(() => []);
    broken.push(...mirrors.filter((path) => path.endsWith(".lock")).map((path) => `${data} has the lock ${path}`));
    const sockets = await readdir(join(data, "run")).catch(() => []);
    broken.push(...sockets.map((name) => `${data} has the socket ${name}`));
    const folders = await readdir(join(data, "sessions")).catch(() => []);
    // What is still to be removed of a session has its id in the name too.
    const orphans = folders.filter(
      (name) => !known.has(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/u.exec(name)?.[0] ?? ""),
    );
    broken.push(...orphans.map((name) => `${data} has the folder ${name} of no session`));
  }
  return broken;
}
