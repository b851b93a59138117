import { writeFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gatewayPids } from "../gateway/gateway-pids.ts";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { createWorld, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** Far beyond what a busy machine takes for an answer, and far below what such a line took when the server read it. */
const longestStallMs = 3_000;

/**
 * A harness that writes what its prompt says: `raw <an expression of JavaScript> times <number>`, each followed by a line
 * feed; `slow` says a word now and then instead. It counts on stderr what it wrote.
 */
const harness = `
import { createInterface } from "node:readline";
const out = (message) => new Promise((done) => process.stdout.write(message, done));
const say = (message) => out(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const update = (update) => say({ method: "session/update", params: { sessionId: "s", update } });
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") await say({ id, result: { protocolVersion: 1 } });
  if (method === "session/new") await say({ id, result: { sessionId: "s" } });
  if (method !== "session/prompt") continue;
  await update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "It begins." } });
  const text = params.prompt.at(-1).text;
  const [, expression, times] = /raw (.*) times (\\d+)/u.exec(text) ?? [];
  for (let count = 0; count < Number(times ?? 0); count += 1) await out((0, eval)(expression) + "\\n");
  for (let count = 0; text.includes("slow") && count < 20; count += 1) {
    await new Promise((done) => setTimeout(done, 250));
    await update({ sessionUpdate: "tool_call", toolCallId: String(count), title: "step " + count, status: "completed" });
  }
  await say({ id, result: { stopReason: "end_turn" } });
}`;

let world: World;
let server: ServerProcess;

beforeAll(async () => {
  world = await createWorld(script);
  const folder = join(world.data, "harness");
  await mkdir(folder);
  await writeFile(join(folder, "harness.mjs"), harness);
  const provider = {
    id: "raw",
    command: process.execPath,
    arguments: [join(folder, "harness.mjs")],
    environment: {},
    readOnly: [folder],
    defaultModel: "m",
    state: [],
  };
  server = await startServerProcess(world, {
    OFFSTAGE_PROVIDERS: JSON.stringify([provider]),
    OFFSTAGE_DEFAULT_AGENT: "raw:m",
    OFFSTAGE_LEASE_SECONDS: "6",
    // What each attack ends as is looked at, not what becomes of it when it is tried again.
    OFFSTAGE_RETRY_HOURS: "0",
  });
});

afterAll(async () => {
  await server?.kill("SIGTERM");
  await world?.close();
});

/** Requests the server's health until stopped. @returns the longest that it took, in ms */
function watchHealth(): () => Promise<number> {
  let isOver = false;
  const longest = (async () => {
    let most = 0;
    while (!isOver) {
      const before = performance.now();
      await (await fetch(`${server.url}/healthz`)).text();
      most = Math.max(most, performance.now() - before);
      await pause(25);
    }
    return most;
  })();
  return () => {
    isOver = true;
    return longest;
  };
}

const message = (inner: string): string =>
  `'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","rawInput":' + ${inner} + '}}}'`;

test.each([
  ["a line of 31 MB, deep", `"[".repeat(15e6) + "]".repeat(15e6)`, 6, "a line of more than 4 MiB"],
  ["a message of 3 MB, deep", message(`"[".repeat(15e5) + "]".repeat(15e5)`), 1, "more than 100 levels deep"],
  ["a message of 3 MB, wide", message(`"[" + "{},".repeat(1e6) + "0]"`), 1, "more than 100,000 values"],
])("%s ends its own session with the reason, and delays no other", async (_name, expression, times, reason) => {
  const { client } = server;
  const other = await client.session.create({ prompt: "slow" });
  for await (const event of client.streamEvents(other.id, {})) if (event.type === "agent.tool") break;
  const stop = watchHealth();
  const hostile = await client.session.create({ prompt: `raw ${expression} times ${times}` });
  const ended = await untilOver(client, hostile.id);
  expect(await untilOver(client, other.id)).toMatchObject({ status: "completed", failure: null });
  expect(await stop()).toBeLessThan(longestStallMs);
  expect(ended).toMatchObject({
    status: "failed",
    failure: { code: "agent_crashed", reason: expect.stringContaining(reason) as string },
  });
  const { events } = await client.session.events(other.id, { limit: 1_000 });
  // It kept its first worker's claim, and all of its output was stored.
  expect(events.filter(({ type }) => type === "agent.tool")).toHaveLength(20);
  expect(server.output()).not.toContain("lost the lease");
});

test("a harness that prints faster than events can be stored is slowed down, and all of its output is stored", async () => {
  const { client } = server;
  const word = `JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "word " } } } })`;
  const { id } = await client.session.create({ prompt: `raw ${word} times 50000` });
  const stop = watchHealth();
  expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
  expect(await stop()).toBeLessThan(longestStallMs);
  // An event may end in the middle of a word.
  let output = "";
  let count = 0;
  for await (const event of client.streamEvents(id, {})) {
    if (event.type !== "agent.message") continue;
    count += 1;
    output += event.data.text;
  }
  expect(output.split("word").length - 1).toBe(50_000);
  expect(count).toBeLessThan(2_000);
});

test("a gateway that ends in the middle of a turn ends that turn alone, with the reason", async () => {
  const { client, pid } = server;
  const begin = async (): Promise<string> => {
    const { id } = await client.session.create({ prompt: "slow" });
    for await (const event of client.streamEvents(id, {})) if (event.type === "agent.tool") break;
    return id;
  };
  const other = await begin();
  const before = gatewayPids(pid);
  const hostile = await begin();
  const gateway = gatewayPids(pid).find((one) => !before.includes(one));
  if (gateway === undefined) throw new Error("the session has no gateway of its own");
  process.kill(gateway, "SIGKILL");
  expect(await untilOver(client, hostile)).toMatchObject({
    status: "failed",
    failure: { code: "agent_crashed", retryable: true, reason: expect.stringContaining("gateway") as string },
  });
  expect(await untilOver(client, other)).toMatchObject({ status: "completed", failure: null });
  await client.session.queue(hostile);
  expect(await untilOver(client, hostile)).toMatchObject({ status: "completed", failure: null });
});
