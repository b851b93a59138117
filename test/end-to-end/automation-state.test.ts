import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import type { Action, Conversation } from "../model/script.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, modelKey, startInProcess, untilOver, type World } from "../world.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;
/** What the tools answered in the last turn. */
let answers: readonly string[] = [];
/** Names of the tools that the last request offered. */
let offered: readonly string[] = [];

/** The version of the entry `seen` in what read_state answered; 0: there is none. */
function versionIn(answer: string | undefined): number {
  return Number(/"key":"seen".*?"version":(\d+)/u.exec((answer ?? "").replaceAll("\\", ""))?.[1] ?? 0);
}

/** The prompt is the text to write; `stale` before it: as if the state were empty. */
function remember(message: string, conversation: Conversation): readonly Action[] {
  answers = conversation.toolResults;
  offered = conversation.tools.map(({ name }) => name);
  const [, stale, value = ""] = /^(stale )?remember (.*)$/mu.exec(message) ?? [];
  if (value === "") return [{ say: "Nothing to remember." }];
  const version = stale === undefined ? versionIn(conversation.toolResults[0]) : 0;
  return [
    { tool: { name: "read_state", input: {} } },
    { tool: { name: "write_state", input: { key: "seen", value, ...(version > 0 && { version }) } } },
    { say: "Remembered." },
  ];
}

beforeAll(async () => {
  world = await createWorld(remember);
  ({ offstage, client } = await startInProcess(world));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function automation(agent: string): Promise<string> {
  const { id } = await callApi(offstage.url, "/automation/create", {
    name: "Remembers",
    macro: `remembers-${(count += 1)}`,
    instructions: "{{ event.order }}",
    agent,
  });
  return id as string;
}

async function run(id: string, order: string): Promise<{ readonly id: string }> {
  const job = await callApi(offstage.url, `/automation/${id}/trigger`, { order });
  const sessionId = await waitFor(
    async () => (await callApi(offstage.url, `/job/${job.id}`)).sessionId as string | null,
    "the job has made its session",
  );
  const session = await untilOver(client, sessionId);
  expect(session).toMatchObject({ status: "completed" });
  return session;
}

const stateOf = async (id: string) => (await client.automation.state(id)).entries;

describe.each(["basic:scripted", "opencode:scripted"])("an automation's state, with %s", (agent) => {
  test("is written by one run, and read and written on by the next", async () => {
    const id = await automation(agent);
    const first = await run(id, 'remember {"last": 1}');
    const [entry] = await stateOf(id);
    expect(entry).toMatchObject({ key: "seen", value: { last: 1 }, sessionId: first.id });
    await run(id, 'remember {"last": 2}');
    expect(answers[0]?.replaceAll("\\", "")).toContain('"last":1');
    expect(await stateOf(id)).toMatchObject([{ key: "seen", value: { last: 2 } }]);
  });
});

test("a run that has not read another's write overwrites nothing, and is refused", async () => {
  const id = await automation("basic:scripted");
  await client.automation.updateState(id, { set: { seen: { last: 2 } } });
  await run(id, 'stale remember {"last": 3}');
  expect(answers.at(-1)).toMatch(/seen has version \d+, not 0; read the state again/u);
  expect(await stateOf(id)).toMatchObject([{ value: { last: 2 } }]);
});

test("a value that holds a secret is masked, and what is no JSON is refused with the reason", async () => {
  const id = await automation("basic:scripted");
  await run(id, `remember {"${modelKey}": "and ${modelKey}"}`);
  expect(await stateOf(id)).toMatchObject([{ value: { "[secret]": "and [secret]" } }]);
  await run(id, "remember no json");
  expect(answers.at(-1)).toContain("value: must be JSON text");
});

test("a session that no automation started has no such tool, one of an automation sees its own state alone", async () => {
  const { id } = await client.session.create({ prompt: "say x", agent: "basic:scripted" });
  await untilOver(client, id);
  expect(offered.length).toBeGreaterThan(0);
  expect(offered.filter((name) => name.includes("state"))).toEqual([]);
  const [one, other] = [await automation("basic:scripted"), await automation("basic:scripted")];
  await client.automation.updateState(one, { set: { seen: "of the one" } });
  await run(other, 'remember "of the other"');
  expect(offered).toEqual(expect.arrayContaining(["read_state", "write_state", "remove_state"]));
  expect(answers.join("\n")).not.toContain("of the one");
  expect(await stateOf(one)).toMatchObject([{ value: "of the one" }]);
  expect(await stateOf(other)).toMatchObject([{ value: "of the other" }]);
});
