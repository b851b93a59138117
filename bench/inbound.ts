import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { cpus } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { Expression } from "../src/domain/automations/condition.ts";
import { createTemplates } from "../src/templates/templates.ts";
import { benchKey, type ApiServerReady } from "./api-server.ts";
import { load, summarize, table } from "./measure.ts";

/**
 * Deliveries to a webhook over HTTP, beside a bare insert of the same payload with a unique key in the same PostgreSQL: what the
 * database alone would allow. Then what conditions cost: one event, and 10,000 automations that listen to it.
 *
 *   npm run bench:inbound
 */
const rounds = 4;
const roundMs = 2_000;
const concurrencies = [1, 8, 32];
const listeners = 10_000;

type Work = () => Promise<void>;

/** A payload as forges send it: some 7 kB. */
const payload = (n: number): object => ({
  action: "opened",
  n,
  issue: { number: n, title: "It fails", labels: ["bug", "triage"], body: "It fails on an empty file. ".repeat(250) },
  sender: { login: "somebody", type: "User" },
});

function poster(agent: Agent): (url: string, body: object, headers?: Record<string, string>) => Promise<string> {
  return (url, body, more = {}) =>
    new Promise((resolve, reject) => {
      const text = JSON.stringify(body);
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...more };
      const sent = request(url, { method: "POST", agent, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.once("error", reject);
        response.once("end", () => {
          const answer = Buffer.concat(parts).toString();
          if ((response.statusCode ?? 500) < 300) resolve(answer);
          else reject(new Error(`POST ${url} answered ${response.statusCode}: ${answer.slice(0, 200)}`));
        });
      });
      sent.once("error", reject);
      sent.end(text);
    });
}

async function bareInsert(pool: pg.Pool): Promise<Work> {
  await pool.query("create table bench_event (id uuid primary key, key text unique, body jsonb not null)");
  let n = 0;
  return async () => {
    n += 1;
    await pool.query("insert into bench_event (id, key, body) values ($1, $2, $3) on conflict do nothing", [
      crypto.randomUUID(),
      `delivery:${n}`,
      JSON.stringify(payload(n)),
    ]);
  };
}

async function compare(ways: Readonly<Record<string, Work>>, concurrency: number): Promise<string[][]> {
  const took: Record<string, number[]> = {};
  for (const work of Object.values(ways)) await load(work, { concurrency, durationMs: 500 });
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, work] of Object.entries(ways)) {
      (took[name] ??= []).push(...(await load(work, { concurrency, durationMs: roundMs })));
    }
  }
  const measured = Object.entries(took).map(([name, all]) => ({ name, ...summarize(all, rounds * roundMs) }));
  const bare = measured[0]?.perSecond ?? Number.NaN;
  return measured.map((one) => [
    one.name,
    String(concurrency),
    one.perSecond.toFixed(0),
    (one.perSecond / bare).toFixed(2),
    one.p50Ms.toFixed(2),
    one.p95Ms.toFixed(2),
    one.p99Ms.toFixed(2),
  ]);
}

/** How long one event's conditions take, of which each differs. */
async function conditions(): Promise<string> {
  const templates = createTemplates();
  const expressions: Expression[] = Array.from({ length: listeners }, (_, n) => ({
    condition: `event.issue.labels.exists(label, label == 'bug') && event.issue.number == ${n}`,
    key: "'issue ' + string(event.issue.number)",
    trigger: { id: String(n), type: "forge" },
  }));
  const asker = { organizationId: "bench", id: "bench" };
  const variables = { event: payload(7) as Record<string, unknown>, repository: null };
  const times: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const began = performance.now();
    const verdicts = await templates.evaluate(expressions, variables, asker);
    times.push(performance.now() - began);
    if (verdicts.filter((each) => "passes" in each && each.passes).length !== 1) throw new Error("one must pass");
  }
  await templates.close();
  const [cold = 0, ...warm] = times;
  return `${listeners} conditions with one event: ${cold.toFixed(0)} ms the first time, ${Math.min(...warm).toFixed(0)} ms once compiled\n`;
}

const server = fork(join(import.meta.dirname, "api-server.ts"));
const exited = once(server, "exit");
try {
  const [ready] = (await Promise.race([once(server, "message"), exited])) as [ApiServerReady | number];
  if (typeof ready !== "object") throw new Error("the server ended before it was ready");
  const most = Math.max(...concurrencies);
  const agent = new Agent({ keepAlive: true, maxSockets: most });
  const post = poster(agent);
  const pool = new pg.Pool({ connectionString: ready.databaseUrl, max: most });
  const key = { authorization: `Bearer ${benchKey}` };
  const hook = async (macro: string, condition: string): Promise<Work> => {
    const automation = { name: macro, macro, instructions: "Work", triggers: [{ type: "webhook", condition }] };
    const made = JSON.parse(await post(new URL("/automation/create", ready.url).href, automation, key)) as {
      triggers: { id: string }[];
    };
    const url = new URL(`/hook/${made.triggers[1]?.id}`, ready.url).href;
    let n = 0;
    return async () => {
      n += 1;
      await post(url, payload(n), { "webhook-id": `${macro}-${n}` });
    };
  };
  const ways = {
    "bare insert": await bareInsert(pool),
    "POST /hook/{id}": await hook("plain", ""),
    "the same, a condition holds": await hook("holds", "event.issue.labels.exists(label, label == 'bug')"),
    "the same, it does not": await hook("filtered", "event.issue.number == 0"),
  };
  const rows: string[][] = [];
  for (const concurrency of concurrencies) rows.push(...(await compare(ways, concurrency)));
  const head = ["", "connections", "per second", "of bare", "p50 ms", "p95 ms", "p99 ms"];
  process.stdout.write(
    `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "cpu"}\n\n${table(head, rows)}`,
  );
  process.stdout.write(`\n${await conditions()}`);
  await pool.end();
  agent.destroy();
} finally {
  if (server.connected) server.disconnect();
  await exited;
}
