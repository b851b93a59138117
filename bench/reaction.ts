import { cpus } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connectForge, type ConnectedForge } from "../test/forge/connect.ts";
import { adminKey, createWorld, startInProcess, type World } from "../test/world.ts";
import { script } from "../test/end-to-end/script.ts";
import { quantile, table } from "./measure.ts";

/**
 * From a forge's delivery of a comment that calls Offstage to the reaction that shows that it was seen: the rights are asked for,
 * the comment is taken up, and the outbox sends it, while the sessions that were called work. One comment at a time, several a
 * second, and all at once.
 *
 *   npm run bench:reaction
 *   npm run bench:reaction -- --answer-ms 300
 */
const { values } = parseArgs({ options: { "answer-ms": { type: "string", default: "0" } } });
/** How long the forge takes for each answer of its API, in ms: real ones take some hundred. */
const answerMs = Number(values["answer-ms"]);
const ways = [
  { name: "one at a time", count: 20, everyMs: 1_000 },
  { name: "5 a second", count: 50, everyMs: 200 },
  { name: "50 at once", count: 50, everyMs: 0 },
] as const;

/** Says something on an issue of its own. @returns how long the reaction took, in ms */
async function react(world: World, forge: ConnectedForge, repository: string, issue: number): Promise<number> {
  const said = forge.say(world.forge.place("bench", repository), issue, { by: "ann", body: "@offstage\nsay hello" });
  const began = performance.now();
  const { reactions } = world.forge.feedback("bench", repository);
  while (!reactions.has(`issues/comments/${said.id} eyes`)) await pause(5);
  return performance.now() - began;
}

const world = await createWorld(script, { embedded: true });
const { offstage } = await startInProcess(world, {
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  OFFSTAGE_FORGES: "[]",
  OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
  OFFSTAGE_CONCURRENCY: "1",
  OFFSTAGE_LOG_LEVEL: "error",
});
try {
  const forge = await connectForge(world.forge, { kind: "github", url: offstage.url, key: adminKey });
  world.forge.answerAfter(answerMs);
  const rows: string[][] = [];
  for (const [index, { name, count, everyMs }] of ways.entries()) {
    const repository = `repository-${index}`;
    const { url } = await world.forge.createRepository("bench", repository, { "a.txt": "a\n" });
    const issues = Array.from({ length: count }, (_, number) => number + 1);
    world.forge.describe("bench", repository, { people: { ann: "write" }, tellsRights: true, issues });
    const response = await fetch(`${offstage.url}/repository/create`, {
      method: "POST",
      headers: { Authorization: `Bearer ${adminKey}`, "Content-Type": "application/json" },
      body: JSON.stringify({ url }),
    });
    if (!response.ok) throw new Error(await response.text());
    const waiting: Promise<number>[] = [];
    for (const issue of issues) {
      waiting.push(react(world, forge, repository, issue));
      if (everyMs > 0) await pause(everyMs);
    }
    const took = (await Promise.all(waiting)).toSorted((one, other) => one - other);
    const seconds = (ms: number | undefined): string => `${((ms ?? 0) / 1_000).toFixed(2)} s`;
    rows.push([name, String(count), ...[quantile(took, 0.5), quantile(took, 0.99), took.at(-1)].map(seconds)]);
  }
  process.stdout.write(
    `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "cpu"}, the forge answers after ${answerMs} ms\n\n`,
  );
  process.stdout.write(table(["comments", "count", "p50", "p99", "longest"], rows));
} finally {
  await offstage.stop();
  await world.close();
}
