import { Agent } from "node:http";
import { join } from "node:path";
import { benchKey, type ApiServerReady } from "./api-server.ts";
import { compare, comparedHead, machine, table } from "./measure.ts";
import { poster } from "./poster.ts";
import { startServed } from "./served.ts";

/**
 * Session creation and automation trigger over HTTP, beside minimal servers with the same HTTP server: a bare
 * transaction of two rows, and a job of pg-boss, in the same PostgreSQL. Each server is a process of its own, and the
 * load another. The ways are interleaved, so that a noisy machine hits all alike.
 *
 *   npm run bench:creation
 */
const rounds = 5;
const roundMs = 2_000;
const concurrencies = [1, 8, 32];

const ours = await startServed<ApiServerReady>(join(import.meta.dirname, "api-server.ts"));
try {
  const peers = await startServed<{ readonly url: string }>(join(import.meta.dirname, "creation-peers.ts"), [
    ours.ready.databaseUrl,
  ]);
  const agent = new Agent({ keepAlive: true, maxSockets: Math.max(...concurrencies) });
  const post = poster(agent);
  const authorized = { authorization: `Bearer ${benchKey}` };
  const toOurs = async (path: string, body: object): Promise<void> => {
    await post(`${ours.ready.url}${path}`, body, authorized);
  };
  const toPeer = (path: string) => async (): Promise<void> => {
    await post(`${peers.ready.url}${path}`, { prompt: "Fix the test" }, authorized);
  };
  await toOurs("/automation/create", {
    name: "bench",
    macro: "bench",
    instructions: "Fix {{ event.issue.url }}",
  });
  const event = { issue: { url: "https://example.com/issues/1", title: "It fails" } };
  const ways = {
    "Fastify, zod, a transaction of two rows": toPeer("/bare"),
    "Fastify, zod, pg-boss": toPeer("/boss"),
    "POST /session/create": () => toOurs("/session/create", { prompt: "Fix the test" }),
    "POST /automation/bench/trigger": () => toOurs("/automation/bench/trigger", event),
  };
  const rows: string[][] = [];
  for (const concurrency of concurrencies) rows.push(...(await compare(ways, { concurrency, rounds, roundMs })));
  process.stdout.write(`${machine()}\n\n${table(comparedHead, rows)}`);
  agent.destroy();
  await peers.stop();
} finally {
  await ours.stop();
}
