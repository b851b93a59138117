import { Agent, request } from "node:http";
import { join } from "node:path";
import pg from "pg";
import { benchKey, type ApiServerReady } from "./api-server.ts";
import { compare, comparedHead, machine, table, type Work } from "./measure.ts";
import { startServed } from "./served.ts";

/**
 * Session creation and automation trigger over HTTP, beside a bare transaction of two rows in the same PostgreSQL:
 * what the database alone would allow. The three are interleaved, so that a noisy machine hits all alike.
 *
 *   npm run bench:creation
 */
const rounds = 5;
const roundMs = 2_000;
const concurrencies = [1, 8, 32];

function poster(url: string, agent: Agent): (path: string, body: unknown) => Promise<void> {
  return (path, body) =>
    new Promise((resolve, reject) => {
      const text = JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${benchKey}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
      };
      const sent = request(new URL(path, url), { method: "POST", agent, headers }, (response) => {
        response.resume();
        response.once("error", reject);
        response.once("end", () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`POST ${path} answered ${response.statusCode}`));
        });
      });
      sent.once("error", reject);
      sent.end(text);
    });
}

/** The least that a durable creation costs: begin, two inserts, commit. */
async function twoRows(pool: pg.Pool): Promise<Work> {
  await pool.query("create table bench_one (id uuid primary key, body jsonb not null)");
  await pool.query("create table bench_two (id bigint generated always as identity primary key, one uuid not null)");
  return async () => {
    const client = await pool.connect();
    try {
      const id = crypto.randomUUID();
      await client.query("begin");
      await client.query("insert into bench_one (id, body) values ($1, $2)", [id, '{"prompt":"Fix the test"}']);
      await client.query("insert into bench_two (one) values ($1)", [id]);
      await client.query("commit");
    } finally {
      client.release();
    }
  };
}

const { ready, stop } = await startServed<ApiServerReady>(join(import.meta.dirname, "api-server.ts"));
try {
  const most = Math.max(...concurrencies);
  const agent = new Agent({ keepAlive: true, maxSockets: most });
  const post = poster(ready.url, agent);
  const pool = new pg.Pool({ connectionString: ready.databaseUrl, max: most });
  await post("/automation/create", {
    name: "bench",
    macro: "bench",
    instructions: "Fix {{ event.issue.url }}",
  });
  const event = { issue: { url: "https://example.com/issues/1", title: "It fails" } };
  const ways = {
    "bare two-row transaction": await twoRows(pool),
    "POST /session/create": () => post("/session/create", { prompt: "Fix the test" }),
    "POST /automation/bench/trigger": () => post("/automation/bench/trigger", event),
  };
  const rows: string[][] = [];
  for (const concurrency of concurrencies) rows.push(...(await compare(ways, { concurrency, rounds, roundMs })));
  process.stdout.write(`${machine()}\n\n${table(comparedHead, rows)}`);
  await pool.end();
  agent.destroy();
} finally {
  await stop();
}
