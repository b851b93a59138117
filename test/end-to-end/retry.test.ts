import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { descendantsOf } from "../chaos/processes.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { obey } from "./script.ts";

// What passes by itself is tried again by itself: nobody queues a session in this file, unless the test is about that.

let world: World;
let offstage: Offstage;
let client: Client;
let isModelAway = false;

beforeAll(async () => {
  world = await createWorld((message) => {
    const isAsked = message.includes("be patient");
    return isAsked && isModelAway ? [{ fail: { status: 503, message: "overloaded for a while" } }] : obey(message);
  });
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

let repositories = 0;
async function repository(): Promise<{ name: string; url: string }> {
  repositories += 1;
  const name = `retry-${repositories}`;
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  return { name, url };
}

const untilRetried = (id: string): Promise<SessionDetail> =>
  waitFor(async () => {
    const session = await client.session.get(id);
    return session.retry === null ? null : session;
  }, "the session was queued for a retry");

/** How often the session went back to the queue for a retry, by code, and how many turns ended. */
async function story(id: string): Promise<{ retries: string[]; turns: number }> {
  const { events } = await client.session.events(id, { limit: 1_000 });
  const retries = events.flatMap((event) =>
    event.type === "session.status" && event.data.retry !== undefined ? [event.data.retry.code] : [],
  );
  return { retries, turns: events.filter(({ type }) => type === "agent.turn").length };
}

test("a forge that is away for a while fails nothing: one turn, one pull request", async () => {
  const { name, url } = await repository();
  // More than one call asks for by itself.
  for (let times = 0; times < 9; times += 1) await world.forge.failNext({ kind: "status", status: 503 });
  const { id } = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
  const retried = await untilRetried(id);
  expect(retried).toMatchObject({ status: "queued", failure: null, retry: { code: "forge_unavailable" } });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null, retry: null });
  const { retries, turns } = await story(id);
  expect(new Set(retries)).toEqual(new Set(["forge_unavailable"]));
  expect(turns).toBe(1);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("a model that is overloaded for a while is asked again", async () => {
  isModelAway = true;
  const { id } = await client.session.create({ prompt: "be patient\nsay done" });
  expect(await untilRetried(id)).toMatchObject({
    retry: { code: "model_error", reason: expect.stringContaining("overloaded for a while") as string },
  });
  isModelAway = false;
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
});

test("a harness that is killed resumes its turn, with what it had made", async () => {
  const { name, url } = await repository();
  const prompt = "write made.txt: before the crash, then shell sleep 2, then write more.txt: after it";
  const { id } = await client.session.create({ prompt, repositories: [url] });
  for await (const event of client.streamEvents(id)) {
    if (event.type === "agent.tool" && event.data.title.includes("sleep")) break;
  }
  const harness = descendantsOf(process.pid).find(({ command }) => command.includes("basic/main"));
  if (harness === undefined) throw new Error("no harness runs");
  process.kill(harness.pid, "SIGKILL");
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  expect((await story(id)).retries).toEqual(["agent_crashed"]);
  const { events } = await client.session.events(id, { limit: 1_000 });
  expect(events.find(({ type, data }) => type === "agent.started" && "resumed" in data && data.resumed)).toBeDefined();
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("a host that can't be found is tried again, at once if a person asks, until the session is cancelled", async () => {
  const { id } = await client.session.create({ prompt: "write x: y", repositories: ["http://nowhere.invalid/a/b"] });
  expect(await untilRetried(id)).toMatchObject({
    retry: { code: "repository_unreachable", reason: expect.stringContaining("nowhere.invalid") as string },
  });
  expect((await client.session.queue(id)).retry).toBeNull();
  // What failed before is forgotten, so that this one is the first again.
  expect((await untilRetried(id)).retry?.attempt).toBe(1);
  await client.session.cancel(id);
  expect(await untilOver(client, id)).toMatchObject({ status: "cancelled", retry: null });
});

test("what does not pass by itself fails at once", async () => {
  const { id } = await client.session.create({ prompt: "fail 400" });
  expect(await untilOver(client, id)).toMatchObject({
    status: "failed",
    failure: { code: "model_error", passing: false },
  });
  expect((await story(id)).retries).toEqual([]);
});
