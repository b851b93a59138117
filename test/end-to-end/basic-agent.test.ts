import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { running, uniqueMark } from "../sandboxes/sandbox-folders.ts";
import { createWorld, modelKey, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function repository(): Promise<{ name: string; url: string }> {
  const name = `basic-${(count += 1)}`;
  return { name, url: (await world.forge.createRepository("acme", name, { "README.md": "# Before\n" })).url };
}

async function eventsOf(id: string): Promise<readonly SessionEvent[]> {
  return (await client.session.events(id, { limit: 1_000 })).events;
}

test("the basic agent writes, runs and says, and its work becomes a pull request", async () => {
  const { name, url } = await repository();
  const order = "write notes/a.txt: alpha, then shell cat notes/a.txt README.md";
  const session = await client.session.create({ prompt: order, repositories: [url] });
  expect(await untilOver(client, session.id)).toMatchObject({
    status: "completed",
    summary: expect.stringContaining("Did as asked") as string,
  });
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  const tools = (await eventsOf(session.id)).filter((event) => event.type === "agent.tool");
  expect(tools.at(-1)?.data).toMatchObject({
    kind: "execute",
    status: "completed",
    content: [{ type: "text", text: expect.stringContaining("alpha# Before") as string }],
  });
  expect(tools.find(({ data }) => data.kind === "edit" && data.status === "completed")?.data.content).toMatchObject([
    { type: "diff", oldText: null, newText: "alpha" },
  ]);
  expect((await client.session.diff(session.id)).repositories[0]?.patch).toContain("+alpha");
  const used = (await eventsOf(session.id)).filter((event) => event.type === "model.usage");
  expect(used).toHaveLength(3);
  expect(used[0]?.data).toMatchObject({ provider: "compatible", model: "scripted" });
  expect(used.every(({ data }) => data.inputTokens > 0 && data.outputTokens > 0)).toBe(true);
});

test("a follow-up resumes the basic agent's own session", async () => {
  const { name, url } = await repository();
  const session = await client.session.create({ prompt: "write one.txt: 1", repositories: [url] });
  await untilOver(client, session.id);
  await client.session.message(session.id, { message: "write two.txt: 2" });
  expect((await untilOver(client, session.id)).status).toBe("completed");
  const starts = (await eventsOf(session.id)).filter((event) => event.type === "agent.started");
  expect(starts.map(({ data }) => data.resumed)).toEqual([false, true]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  const patch = (await client.session.diff(session.id)).repositories[0]?.patch;
  expect(patch).toContain("one.txt");
  expect(patch).toContain("two.txt");
});

test.each(["basic", "opencode"])(
  "%s passes the level of reasoning that the agent's name ends with on to its model",
  async (provider) => {
    const { id } = await client.session.create({ prompt: "say thought", agent: `${provider}:scripted:high` });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", agent: `${provider}:scripted:high` });
    const { model } = world;
    expect(model.requests.at(-1)).toMatchObject({ body: { model: "scripted", reasoning_effort: "high" } });
    await untilOver(client, (await client.session.create({ prompt: "say not", agent: `${provider}:scripted` })).id);
    expect(model.requests.at(-1)?.body).not.toHaveProperty("reasoning_effort");
  },
);

test("a command that fails is reported to the model and does not end the session", async () => {
  const session = await client.session.create({ prompt: "shell echo broken >&2; exit 3, then shell echo went on" });
  expect((await untilOver(client, session.id)).status).toBe("completed");
  const texts = (await eventsOf(session.id)).flatMap((event) =>
    event.type === "agent.tool" ? event.data.content : [],
  );
  expect(JSON.stringify(texts)).toContain("exit code 3");
  expect(JSON.stringify(texts)).toContain("went on");
});

test("the commands of the basic agent do not see the model's key", async () => {
  const session = await client.session.create({ prompt: "shell env" });
  await untilOver(client, session.id);
  const output = JSON.stringify((await eventsOf(session.id)).filter((event) => event.type === "agent.tool"));
  expect(output).toContain("PATH=");
  expect(output).not.toContain("OFFSTAGE_MODEL_API_KEY");
  expect(output).not.toContain(modelKey);
});

test("a model that answers only errors fails the session with what it said", async () => {
  const session = await client.session.create({ prompt: "fail 401" });
  const over = await untilOver(client, session.id);
  expect(over.failure).toMatchObject({
    code: "model_error",
    reason: expect.stringContaining("the scripted model fails") as string,
  });
});

test("a turn of the basic agent is cancelled with its command", async () => {
  const session = await client.session.create({ prompt: "shell sleep 611" });
  for await (const event of client.streamEvents(session.id)) {
    if (event.type === "agent.tool") await client.session.cancel(session.id);
  }
  expect((await client.session.get(session.id)).status).toBe("cancelled");
});

test("an agent that the operator added by configuration alone works like the others", async () => {
  const own = await createWorld(script);
  const root = join(import.meta.dirname, "../..");
  const provider = {
    id: "mine",
    name: "My own",
    command: process.execPath,
    arguments: [join(root, "src/agents/basic/main.ts")],
    environment: {
      OFFSTAGE_AGENT_MODEL: "compatible/{model}",
      OFFSTAGE_MODEL_BASE_URL: "{compatibleUrl}",
      OFFSTAGE_MODEL_API_KEY: "{token}",
    },
    readOnly: ["src", "node_modules", "package.json"].map((part) => join(root, part)),
    defaultModel: "scripted",
  };
  const started = await startInProcess(own, {
    OFFSTAGE_PROVIDERS: JSON.stringify([provider]),
    OFFSTAGE_DEFAULT_AGENT: "",
  });
  try {
    expect((await started.client.agent.list()).agents[0]).toMatchObject({
      id: "mine",
      name: "My own",
      available: true,
      isDefault: true,
    });
    const { id } = await started.client.session.create({ prompt: "say from my own agent", agent: "mine:other/model" });
    expect(await untilOver(started.client, id)).toMatchObject({ status: "completed", summary: "from my own agent" });
    expect(own.model.requests.at(-1)?.conversation.model).toBe("other/model");
  } finally {
    await started.offstage.stop();
    await own.close();
  }
});

test("without a sandbox, by the operator's choice, the same work comes out, and no process is left", async () => {
  const bare = await createWorld(script);
  const started = await startInProcess(bare, { OFFSTAGE_SANDBOX: "none", OFFSTAGE_DEFAULT_AGENT: "basic:scripted" });
  try {
    const { url } = await bare.forge.createRepository("acme", "bare", { "a.txt": "a\n" });
    const mark = uniqueMark();
    const order = `shell (setsid sleep ${mark} > /dev/null 2>&1 &); echo b > b.txt`;
    const { id } = await started.client.session.create({ prompt: order, repositories: [url] });
    expect(await untilOver(started.client, id)).toMatchObject({ status: "completed", sandboxed: false });
    expect(await bare.forge.pullRequests("acme", "bare")).toHaveLength(1);
    expect(running(mark)).toEqual([]);
    // The key stays with the gateway here too.
    const { events } = await started.client.session.events(id, { limit: 1_000 });
    expect(events.some(({ type }) => type === "model.usage")).toBe(true);
  } finally {
    await started.offstage.stop();
    await bare.close();
  }
});
