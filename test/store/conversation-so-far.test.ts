import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { readRecordedSession } from "../../src/store/checkpoints/recorded-session.ts";
import type { ClaimedSession } from "../../src/store/queue/claims.ts";
import {
  appendClaimEvents,
  completeMessage,
  nextMessage,
  saveHarness,
  transcript,
} from "../../src/store/queue/progress.ts";
import { addMessage } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, requireClaim } from "./fixtures.ts";

// What another attempt, or a replay, knows of the turns so far: all of it from rows, since events are removed by their age and size.

let testDatabase: TestDatabase;
let database: Database;
let claimed: ClaimedSession;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());
beforeEach(async () => {
  const organizationId = await addOrganization(database);
  await addSession(database, organizationId, { prompt: "Count the files." });
  claimed = await requireClaim(database);
});

async function say(text: string): Promise<void> {
  const message = { id: crypto.randomUUID(), text, from: null };
  await addMessage(database, claimed.organizationId, claimed.sessionId, message);
}

async function answer(text: string): Promise<void> {
  const message = await nextMessage(database, claimed);
  if (message === null) throw new Error("there is no message to answer");
  const data = { text: `${text} (as it was said)`, part: "1" };
  await appendClaimEvents(database, claimed, [{ type: "agent.message", data }]);
  await completeMessage(database, claimed, message.id, { answer: text, isKept: true });
}

test("the conversation is that of the turns that are over, without any event", async () => {
  await say("And the folders?");
  await nextMessage(database, claimed);
  expect(await transcript(database, claimed)).toEqual([]);
  await answer("There are 12.");
  await nextMessage(database, claimed);
  await database.pool.query("delete from event where session_id = $1", [claimed.sessionId]);
  expect(await transcript(database, claimed)).toEqual([
    { from: "user", text: "Count the files." },
    { from: "agent", text: "There are 12." },
  ]);
  await answer("There are 3.");
  expect(await transcript(database, claimed)).toEqual([
    { from: "user", text: "Count the files." },
    { from: "agent", text: "There are 12." },
    { from: "user", text: "And the folders?" },
    { from: "agent", text: "There are 3." },
  ]);
});

test("of a very long conversation only the newest turns are given", async () => {
  await answer("x".repeat(300_000));
  await say("Again.");
  await answer("y".repeat(300_000));
  await say("Briefly.");
  await answer("It is done.");
  const turns = await transcript(database, claimed);
  expect(turns.map(({ text }) => text.slice(0, 10))).toEqual(["Again.", "yyyyyyyyyy", "Briefly.", "It is done"]);
});

test("a replay uses the agent that the last turn was begun with", async () => {
  const { organizationId, sessionId } = claimed;
  const agent = async () => (await readRecordedSession(database, organizationId, sessionId)).session.agent;
  expect(await agent()).toBeNull();
  await saveHarness(database, claimed, { provider: "opencode", model: "a/b", sessionId: "ses_1" });
  await database.pool.query("delete from event where session_id = $1", [sessionId]);
  expect(await agent()).toBe("opencode:a/b");
  await saveHarness(database, claimed, { provider: "codex", model: null, sessionId: "1" });
  expect(await agent()).toBe("codex");
});
