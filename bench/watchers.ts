import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openDatabase, type Database } from "../src/database/database.ts";
import { newSession } from "../src/domain/sessions/new-session.ts";
import { createLogger } from "../src/observability.ts";
import { findDefaultOrganization } from "../src/store/people/organizations.ts";
import { appendEvents } from "../src/store/sessions/events.ts";
import { createSession } from "../src/store/sessions/new-session.ts";
import { benchKey, type ApiServerReady } from "./api-server.ts";
import { machine, quantile, table } from "./measure.ts";
import { startServed } from "./served.ts";
import type { WatchOrder, WatchReport } from "./watchers-client.ts";

/**
 * Very many watchers of streams of events on one API node: the memory of each, and how long an event is on its way from
 * its commit to them; all of them on one session, and spread over many. Database, server and watchers are processes
 * of their own on one machine. `ulimit -n` must be above the number of watchers.
 *
 *   npm run bench:watchers -- --watchers 10000 --sessions 1000
 */
const { values: options } = parseArgs({
  options: { watchers: { type: "string", default: "10000" }, sessions: { type: "string", default: "1000" } },
});
const watchers = Number(options.watchers);
const rounds = 10;
const spreadEvents = 300;
const spreadPerSecond = 50;
const portsEach = 5_000;

const now = (): number => performance.timeOrigin + performance.now();

function residentMebibytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

interface Watched {
  /** The server's process. */
  readonly pid: number;
  readonly url: string;
  readonly database: Database;
  /** Of the server before anyone watched. */
  readonly bareMebibytes: number;
}

/** Commits one event. @returns when */
async function tell({ database }: Watched, session: string, round: number): Promise<number> {
  await database.transaction((transaction) =>
    appendEvents(transaction, session, [{ type: "notice", data: { level: "warning", text: `round ${round}` } }]),
  );
  const at = now();
  database.notify("offstage_event", session);
  return at;
}

interface Plan {
  readonly name: string;
  readonly sessions: readonly string[];
  /** One event each, with so long between. */
  readonly sessionOfRound: readonly string[];
  readonly pauseMs: number;
}

async function measure(watched: Watched, plan: Plan): Promise<string[]> {
  const from = Array.from({ length: Math.ceil(watchers / portsEach) }, (_, index) => `127.0.0.${index + 2}`);
  const client = fork(join(import.meta.dirname, "watchers-client.ts"));
  const opened = performance.now();
  const reports = new Map<number, readonly number[]>();
  let heardOpen = (): void => undefined;
  const open = new Promise<void>((resolve) => (heardOpen = resolve));
  client.on("message", (report: WatchReport) => {
    if ("open" in report) heardOpen();
    else reports.set(report.round, [...(reports.get(report.round) ?? []), ...report.at]);
  });
  const sessions = Array.from({ length: watchers }, (_, index) => plan.sessions[index % plan.sessions.length] ?? "");
  client.send({ url: watched.url, key: benchKey, sessions, from } satisfies WatchOrder);
  await open;
  const openMs = performance.now() - opened;
  await pause(3_000);
  const each = ((residentMebibytes(watched.pid) - watched.bareMebibytes) * 1024) / watchers;
  const committed: number[] = [];
  for (const [round, session] of plan.sessionOfRound.entries()) {
    committed.push(await tell(watched, session, round));
    await pause(plan.pauseMs);
  }
  const expected = (watchers / plan.sessions.length) * plan.sessionOfRound.length;
  const count = (): number => [...reports.values()].reduce((sum, at) => sum + at.length, 0);
  for (let waited = 0; count() < expected && waited < 60; waited += 1) await pause(1_000);
  const took = [...reports].flatMap(([round, at]) => at.map((time) => time - (committed[round] ?? Number.NaN)));
  const sorted = took.toSorted((a, b) => a - b);
  client.disconnect();
  await once(client, "exit");
  await pause(2_000);
  return [
    plan.name,
    String(watchers),
    (openMs / 1_000).toFixed(1),
    each.toFixed(1),
    `${count()} of ${expected}`,
    ...[0.5, 0.99, 1].map((share) => quantile(sorted, share).toFixed(0)),
  ];
}

const { ready, pid, stop } = await startServed<ApiServerReady>(join(import.meta.dirname, "api-server.ts"));
try {
  const database = await openDatabase({ url: ready.databaseUrl, directory: "", logger: createLogger("error") });
  const organizationId = await findDefaultOrganization(database);
  const sessions: string[] = [];
  for (let made = 0; made <= Number(options.sessions); made += 1) {
    const session = newSession({ prompt: "Fix the test", repositories: [], sandboxed: true });
    sessions.push((await createSession(database, organizationId, session)).id);
  }
  const watched: Watched = { pid, url: ready.url, database, bareMebibytes: residentMebibytes(pid) };
  const [one = "", ...many] = sessions;
  const plans: Plan[] = [
    {
      name: "all on one session",
      sessions: [one],
      sessionOfRound: Array.from({ length: rounds }, () => one),
      pauseMs: 5_000,
    },
    {
      name: `over ${many.length} sessions, ${spreadPerSecond} events a second`,
      sessions: many,
      sessionOfRound: Array.from({ length: spreadEvents }, (_, index) => many[(index * 7) % many.length] ?? ""),
      pauseMs: 1_000 / spreadPerSecond,
    },
  ];
  const lines: string[][] = [];
  for (const plan of plans) lines.push(await measure(watched, plan));
  const head = ["", "watchers", "opened in s", "KiB each", "events read", "p50 ms", "p99 ms", "slowest ms"];
  process.stdout.write(`${machine()}\n\n${table(head, lines)}`);
  await database.close();
} finally {
  await stop();
}
