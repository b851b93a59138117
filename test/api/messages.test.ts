import { afterAll, beforeAll, expect, test } from "vitest";
import { finishSession, releaseClaim } from "../../src/store/queue/claims.ts";
import { completeMessage, nextMessage, reopenMessages, transcript } from "../../src/store/queue/progress.ts";
import type { Claim } from "../../src/store/queue/lease.ts";
import { atOnce, requireClaim } from "../store/fixtures.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";

let api: TestApp;

beforeAll(async () => {
  api = await createTestApp();
});
afterAll(() => api?.close());

async function create(): Promise<string> {
  // Nothing that another test left is claimed instead.
  await api.database.pool.query("update session set status = 'draft' where status = 'queued'");
  const { body } = await api.post("/session/create", { prompt: "First" });
  await api.database.pool.query("update session set priority = 1 where id = $1", [body.id]);
  return body.id;
}

/** @returns the message's id */
async function send(id: string, message: string): Promise<string> {
  expect((await api.post(`/session/${id}/message`, { message })).status).toBe(200);
  const { body } = await api.get(`/session/${id}/message/list?limit=1`);
  expect(body.messages[0].text).toBe(message);
  return body.messages[0].id;
}

const withdraw = (id: string, messageId: string): Promise<Answer> =>
  api.post(`/session/${id}/message/${messageId}/withdraw`, {});
const statuses = async (id: string): Promise<string[]> =>
  (await api.get(`/session/${id}/message/list`)).body.messages.map(({ status }: { status: string }) => status);
const statusOf = async (id: string): Promise<string> => (await api.get(`/session/${id}`)).body.status;

async function answerNext(claim: Claim, isKept = true): Promise<void> {
  const message = await nextMessage(api.database, claim);
  if (message === null) throw new Error("there is no message");
  await completeMessage(api.database, claim, message.id, { answer: `to ${message.text}`, isKept });
}

const done = { status: "completed", summary: "Done.", failure: null } as const;

test("a message that no turn has taken is withdrawn, and the agent never gets it", async () => {
  const id = await create();
  const claim = await requireClaim(api.database);
  await nextMessage(api.database, claim);
  const second = await send(id, "Second");
  const third = await send(id, "Third");
  const withdrawn = await withdraw(id, second);
  expect([withdrawn.status, withdrawn.body.status]).toEqual([200, "running"]);
  expect(await statuses(id)).toEqual(["pending", "withdrawn", "running"]);
  expect((await withdraw(id, second)).status).toBe(200);
  await answerNext(claim);
  const next = await nextMessage(api.database, claim);
  expect(next?.id).toBe(third);
  const late = await withdraw(id, third);
  expect([late.status, late.body.error]).toEqual([409, `message ${third} can't be withdrawn: a turn has taken it`]);
  expect((await transcript(api.database, claim)).map(({ text }) => text)).not.toContain("Second");
  await completeMessage(api.database, claim, third, { answer: "to Third", isKept: true });
  // What was withdrawn is not asked again, as what was answered and lost is.
  expect(await reopenMessages(api.database, claim, "all")).toBe(2);
  expect(await statuses(id)).toEqual(["running", "withdrawn", "running"]);
  const { body } = await api.get(`/session/${id}/events`);
  const announced = body.events.filter(({ type }: { type: string }) => type === "message.withdrawn");
  expect(announced.map(({ data }: { data: unknown }) => data)).toEqual([{ messageId: second }]);
});

test("a session that was queued for the message alone is cancelled, one that has other work goes on", async () => {
  const id = await create();
  const claim = await requireClaim(api.database);
  await answerNext(claim);
  await finishSession(api.database, claim, done);
  const [one, two] = [await send(id, "One"), await send(id, "Two")];
  expect(await statusOf(id)).toBe("queued");
  expect((await withdraw(id, one)).body.status).toBe("queued");
  const last = await withdraw(id, two);
  expect(last.body.status).toBe("cancelled");
  const { body } = await api.get(`/session/${id}/events`);
  expect(body.events.at(-1).data).toEqual({
    from: "queued",
    to: "cancelled",
    reason: "The message that it was queued for was withdrawn.",
  });
});

test("a failed session to which a message was sent and withdrawn is not tried again by that", async () => {
  const id = await create();
  const claim = await requireClaim(api.database);
  await nextMessage(api.database, claim);
  await finishSession(api.database, claim, {
    status: "failed",
    summary: null,
    failure: { code: "internal", reason: "r", retryable: true, passing: false, remedy: "m" },
  });
  const message = await send(id, "Other");
  expect((await withdraw(id, message)).body.status).toBe("cancelled");
});

test("a session whose answered work is not delivered yet stays queued", async () => {
  const id = await create();
  const claim = await requireClaim(api.database);
  await answerNext(claim);
  const message = await send(id, "More");
  await releaseClaim(api.database, claim);
  expect((await withdraw(id, message)).body.status).toBe("queued");
  expect(await statuses(id)).toEqual(["withdrawn", "done"]);
});

test("the first message stays, and so does one of another session", async () => {
  const id = await create();
  const first = await withdraw(id, id);
  expect([first.status, first.body.error]).toEqual([
    409,
    `message ${id} is the session's first: cancel or delete the session instead`,
  ]);
  const other = await create();
  const message = await send(other, "Theirs");
  expect((await withdraw(id, message)).status).toBe(404);
  expect((await withdraw(id, "nonsense")).status).toBe(404);
});

test("of a withdrawal and a worker that takes the message at the same moment, one is first", async () => {
  for (let round = 0; round < 10; round += 1) {
    const id = await create();
    const claim = await requireClaim(api.database);
    await answerNext(claim);
    const message = await send(id, "Contended");
    const [withdrawn, taken] = await Promise.all([withdraw(id, message), nextMessage(api.database, claim)]);
    expect([withdrawn.status, taken?.id ?? null]).toEqual(withdrawn.status === 200 ? [200, null] : [409, message]);
    await releaseClaim(api.database, claim);
    await api.post(`/session/${id}/cancel`, {});
  }
  const id = await create();
  const message = await send(id, "Twice");
  const answers = await atOnce(4, () => withdraw(id, message));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(await statusOf(id)).toBe("queued");
});
