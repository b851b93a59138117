import { parseArgs } from "node:util";
import type { Client } from "../src/client.ts";
import { script } from "../test/end-to-end/script.ts";
import { startServerProcess } from "../test/server-process.ts";
import { createWorld, untilOver, type World } from "../test/world.ts";
import { machine, quantile, table } from "./measure.ts";

/**
 * From the request that cancels a session whose agent runs a long command to the end of the session, with every process gone.
 *
 *   npm run bench:cancel -- --sessions 20
 */
const { values: options } = parseArgs({ options: { sessions: { type: "string", default: "20" } } });

/** @returns milliseconds that a cancel took */
async function cancelOne(client: Client, world: World, agent: string, number: number): Promise<number> {
  const name = `cancelled-${agent.split(":")[0]}-${number}`;
  const { url } = await world.forge.createRepository("bench", name, { "README.md": "# Bench\n" });
  const { id } = await client.session.create({ prompt: "shell sleep 4711", agent, repositories: [url] });
  for await (const event of client.streamEvents(id)) if (event.type === "agent.tool") break;
  const askedAt = performance.now();
  await client.session.cancel(id);
  const { status } = await untilOver(client, id);
  if (status !== "cancelled") throw new Error(`session ${id} ended as ${status}`);
  return performance.now() - askedAt;
}

const world = await createWorld(script, { embedded: true });
try {
  const server = await startServerProcess(world);
  try {
    const lines: string[][] = [];
    for (const agent of ["basic:scripted", "opencode:scripted"]) {
      const took: number[] = [];
      for (let number = 0; number < Number(options.sessions); number += 1) {
        took.push(await cancelOne(server.client, world, agent, number));
      }
      took.sort((a, b) => a - b);
      lines.push([agent, String(took.length), quantile(took, 0.5).toFixed(0), quantile(took, 0.99).toFixed(0)]);
    }
    process.stdout.write(`${machine()}\n\n${table(["", "sessions", "p50 ms", "p99 ms"], lines)}`);
  } finally {
    await server.kill("SIGTERM");
  }
} finally {
  await world.close();
}
