import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { ChaosFleet } from "./fleet.ts";
import { listProcesses } from "./processes.ts";
import type { Accepted } from "./requests.ts";

const run = promisify(execFile);

interface SessionRow {
  id: string;
  job_id: string | null;
  status: string;
  branch_name: string;
  failure: unknown;
  worker: string | null;
}

/** @returns one sentence for each promise that was broken */
export async function brokenPromises(fleet: ChaosFleet, accepted: readonly Accepted[]): Promise<string[]> {
  const { rows } = await fleet.store.query<SessionRow>(
    "select id, job_id, status, branch_name, failure, worker from session",
  );
  return [
    ...checkSessions(rows, accepted),
    ...(await checkJobs(fleet, accepted)),
    ...(await checkPullRequests(fleet, rows, accepted)),
    ...(await checkEvents(fleet)),
    ...(await checkLeftovers(fleet)),
  ];
}

const sessionOf = (rows: readonly SessionRow[], { kind, id }: Accepted): SessionRow | undefined =>
  rows.find((row) => (kind === "session" ? row.id === id : row.job_id === id));

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

async function checkJobs(fleet: ChaosFleet, accepted: readonly Accepted[]): Promise<string[]> {
  const { rows } = await fleet.store.query<{ id: string; status: string; sessions: number }>(
    `select job.id, job.status, (select count(*)::integer from session where job_id = job.id) as sessions from job`,
  );
  const triggers = accepted.filter(({ kind }) => kind === "trigger");
  const broken = rows
    .filter(({ status, sessions }) => status !== "completed" || sessions !== 1)
    .map(({ id, status, sessions }) => `job ${id} is ${status} with ${sessions} sessions`);
  if (rows.length !== triggers.length)
    broken.push(`${triggers.length} triggers were accepted, and there are ${rows.length} jobs`);
  return broken;
}

async function checkPullRequests(
  fleet: ChaosFleet,
  rows: readonly SessionRow[],
  accepted: readonly Accepted[],
): Promise<string[]> {
  const broken: string[] = [];
  for (const repository of new Set(accepted.map((work) => work.repository))) {
    const pulls = await fleet.forge.pullRequests("acme", repository);
    const here = accepted.filter((work) => work.repository === repository);
    if (pulls.length !== here.length) {
      broken.push(`${repository} has ${pulls.length} pull requests for ${here.length} sessions`);
    }
    for (const work of here) {
      const branch = sessionOf(rows, work)?.branch_name ?? "";
      const own = pulls.filter(({ head }) => head === branch);
      if (own.length !== 1) broken.push(`${branch} of ${repository} has ${own.length} pull requests`);
      broken.push(...(await checkContent(fleet, work, branch)));
    }
  }
  return broken;
}

/** Exactly the files that the agent was told to write, as the forge has them. */
async function checkContent(fleet: ChaosFleet, work: Accepted, branch: string): Promise<string[]> {
  const show = async (...parameters: string[]): Promise<string> =>
    (await run("git", ["-C", fleet.forge.pathOf("acme", work.repository), ...parameters])).stdout;
  try {
    const changed = (await show("diff", "--name-only", `main...${branch}`)).trim().split("\n").toSorted();
    const expected = [work.file, `more-${work.number}.txt`].toSorted();
    const content = await show("show", `${branch}:${work.file}`);
    if (changed.join() === expected.join() && content.trim() === work.content) return [];
    return [`${branch} of ${work.repository} has ${changed.join(", ")} with ${JSON.stringify(content)}`];
  } catch (error) {
    return [`${branch} of ${work.repository} can't be read: ${String(error)}`];
  }
}

/** Numbered from 1 without a gap, and never two ends in a row. */
async function checkEvents(fleet: ChaosFleet): Promise<string[]> {
  const { rows } = await fleet.store.query<{ session_id: string; count: string; last: string }>(
    "select session_id, count(*), max(seq) as last from event group by session_id having count(*) <> max(seq)",
  );
  return rows.map(({ session_id, count, last }) => `session ${session_id} has ${count} events up to number ${last}`);
}

/** After every node was told to stop: nothing runs, nothing is held. */
async function checkLeftovers(fleet: ChaosFleet): Promise<string[]> {
  const processes = listProcesses().filter(
    ({ command }) => command.includes(fleet.folder) && !command.includes("/bin/postgres"),
  );
  const { rows: locks } = await fleet.store.query<{ objid: string }>(
    "select objid from pg_locks where locktype = 'advisory' and objid <> 4747001",
  );
  const broken = [
    ...processes.map(({ pid, command }) => `process ${pid} is still there: ${command.slice(0, 200)}`),
    ...locks.map(({ objid }) => `the lock ${objid} is still held`),
  ];
  for (const { data } of fleet.workers) {
    const mirrors = await readdir(join(data, "mirrors"), { recursive: true }).catch(() => []);
    broken.push(...mirrors.filter((path) => path.endsWith(".lock")).map((path) => `${data} has the lock ${path}`));
    const sockets = await readdir(join(data, "run")).catch(() => []);
    broken.push(...sockets.map((name) => `${data} has the socket ${name}`));
  }
  return broken;
}
