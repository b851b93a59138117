import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import type { Action } from "../model/server.ts";
import { descendantsOf } from "../chaos/processes.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { letGo, obey, untilLetGo } from "./script.ts";

// Passing failures are retried automatically: no test in this file queues a session by hand, unless it is about that.

let world: World;
let offstage: Offstage;
let client: Client;
/** What the model does instead of answering; null: it answers. */
let trouble: Action | null = null;

beforeAll(async () => {
  world = await createWorld((message) => {
    const answers = obey(message);
    return message.includes("be patient") && trouble !== null ? [[...answers.slice(0, 1), trouble]] : answers;
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

/** The session once it is queued for a retry, or has failed. */
const untilRetried = (id: string, of = client): Promise<SessionDetail> =>
  waitFor(async () => {
    const session = await of.session.get(id);
    return session.retry === null && session.failure === null ? null : session;
  }, "the session was queued for a retry");

/** How often the session went back to the queue for a retry, by code, and how many turns ended. */
async function story(id: string): Promise<{ retries: string[]; turns: number }> {
  const { events } = await client.session.events(id, { limit: 1_000 });
  const retries = events.flatMap((event) =>
    event.type === "session.status" && event.data.retry !== undefined ? [event.data.retry.code] : [],
  );
  return { retries, turns: events.filter(({ type }) => type === "agent.turn").length };
}

test("a git server that is busy is left alone for as long as it asks", async () => {
  const { name, url } = await repository();
  await world.forge.failNext({ kind: "refuseGit", at: "push", late: true, status: 503, retryAfter: "7200" });
  const { id } = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
  const { retry } = await untilRetried(id);
  expect(retry).toMatchObject({ code: "repository_unreachable" });
  expect(Date.parse(retry?.at ?? "")).toBeGreaterThan(Date.now() + 60 * 60_000);
  await client.session.queue(id);
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  expect((await story(id)).turns).toBe(1);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("a forge that is away for a while fails nothing: one turn, one pull request", async () => {
  const { name, url } = await repository();
  // More than one call asks for by itself, and none for what watches the pull requests of other tests.
  for (let times = 0; times < 9; times += 1) await world.forge.failNext({ kind: "status", status: 503, name });
  const { id } = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
  const retried = await untilRetried(id);
  expect(retried).toMatchObject({ status: "queued", failure: null, retry: { code: "forge_unavailable" } });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null, retry: null });
  const { retries, turns } = await story(id);
  expect(new Set(retries)).toEqual(new Set(["forge_unavailable"]));
  expect(turns).toBe(1);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

const overloaded = "overloaded for a while";
test.each<[string, Action, string]>([
  ["is overloaded for a while", { fail: { status: 503, message: overloaded } }, overloaded],
  ["is away behind a proxy with a status of its own", { fail: { status: 522, message: overloaded } }, overloaded],
  ["breaks its answer off", { cut: true }, ""],
  [
    "says in the midst of its answer that it is overloaded",
    { failMidway: { status: 529, message: overloaded } },
    overloaded,
  ],
])("a model that %s is asked again", async (_, how, words) => {
  trouble = how;
  const { id } = await client.session.create({ prompt: "be patient\nsay all of this is done, at last" });
  expect(await untilRetried(id)).toMatchObject({
    retry: { code: "model_error", reason: expect.stringContaining(words) as string },
  });
  trouble = null;
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
});

test("a model that takes a request and never answers is asked again", async () => {
  let isSilent = true;
  const silent = await createWorld((message) => (isSilent ? [{ hang: true }] : obey(message)));
  const started = await startInProcess(silent, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    // More than a busy machine takes until the agent asks its model.
    OFFSTAGE_STALL_SECONDS: "30",
  });
  try {
    const { id } = await started.client.session.create({ prompt: "say done" });
    expect(await untilRetried(id, started.client)).toMatchObject({
      failure: null,
      retry: { code: "model_error", reason: expect.stringMatching(/has not answered for \d+ s/u) as string },
    });
    isSilent = false;
    expect(await untilOver(started.client, id)).toMatchObject({ status: "completed", failure: null });
  } finally {
    await started.offstage.stop();
    await silent.close();
  }
});

test("a harness that is killed resumes its turn, with what it had made", async () => {
  const { name, url } = await repository();
  const prompt = `write made.txt: before the crash, then shell ${untilLetGo}, then write more.txt: after it`;
  const { id } = await client.session.create({ prompt, repositories: [url] });
  for await (const event of client.streamEvents(id)) {
    if (event.type === "agent.tool" && event.data.title.includes("sleep")) break;
  }
  const harness = descendantsOf(process.pid).find(({ command }) => command.includes("basic/main"));
  if (harness === undefined) throw new Error("no harness runs");
  process.kill(harness.pid, "SIGKILL");
  await letGo(world.data, id, name);
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
