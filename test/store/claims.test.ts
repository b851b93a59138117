import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { newSession, type SessionRequest } from "../../src/domain/new-session.ts";
import {
  appendClaimEvents,
  claimSession,
  completeMessage,
  finishSession,
  LeaseLostError,
  nextMessage,
  recoverSessions,
  releaseClaim,
  renewClaim,
  type Claim,
} from "../../src/store/claims.ts";
import { listEvents } from "../../src/store/events.ts";
import { addMessage, cancelSession, createSession, getSession, queueSession } from "../../src/store/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

afterAll(() => testDatabase?.close());

/** An organization of its own for each test: what others left in the queue is not in its way. */
async function organization(limit: number | null = null): Promise<string> {
  await database.pool.query("update session set status = 'cancelled' where status in ('queued', 'running')");
  const id = crypto.randomUUID();
  await database.pool.query("insert into organization (id, name, max_running_sessions) values ($1, $2, $3)", [
    id,
    id,
    limit,
  ]);
  return id;
}

async function create(organizationId: string, request: Partial<SessionRequest> = {}): Promise<string> {
  const session = newSession({ prompt: "x", repositories: [], sandboxed: true, ...request });
  return (await createSession(database, organizationId, session)).id;
}

const claim = (worker = "worker", leaseMs = 60_000, maxRunningPerOrganization = 100) =>
  claimSession(database, { worker, leaseMs, maxRunningPerOrganization });

async function claimed(organizationId: string, request?: Partial<SessionRequest>): Promise<Claim> {
  await create(organizationId, request);
  const taken = await claim();
  if (taken === null) throw new Error("there was nothing to claim");
  return taken;
}

/** Lets the run come to its end with every message answered. */
async function complete(taken: Claim): Promise<string> {
  for (
    let message = await nextMessage(database, taken);
    message !== null;
    message = await nextMessage(database, taken)
  ) {
    await completeMessage(database, taken, message.id, "done");
  }
  return finishSession(database, taken, done);
}

const done = { status: "completed", summary: null, failure: null } as const;
const statusOf = async (organizationId: string, id: string) => (await getSession(database, organizationId, id))?.status;

describe("claiming", () => {
  it("gives each session to one worker, however many ask at once", async () => {
    const organizationId = await organization();
    const created = await Promise.all(Array.from({ length: 30 }, () => create(organizationId)));
    const taken = await Promise.all(Array.from({ length: 60 }, (_, index) => claim(`worker-${index}`)));
    const ids = taken.filter((one) => one !== null).map(({ sessionId }) => sessionId);
    expect(new Set(ids).size).toBe(ids.length);
    // What was locked by another claim in that moment is taken by the next.
    while (ids.length < created.length) {
      const next = await claim();
      if (next === null) break;
      ids.push(next.sessionId);
    }
    expect(new Set(ids)).toEqual(new Set(created));
  });

  it("never lets an organization run more than its limit at once", async () => {
    const organizationId = await organization(3);
    await Promise.all(Array.from({ length: 10 }, () => create(organizationId)));
    const taken = await Promise.all(Array.from({ length: 20 }, () => claim()));
    expect(taken.filter((one) => one !== null)).toHaveLength(3);
    const first = taken.find((one) => one !== null);
    await complete(first as Claim);
    expect(await claim()).not.toBeNull();
    expect(await claim()).toBeNull();
  });

  it("goes on to another organization where the first is at its limit", async () => {
    const [full, free] = [await organization(1), await organization(1)];
    await claimed(full, { priority: 1 });
    await create(full, { priority: 1 });
    const waiting = await create(free, { priority: 9 });
    expect((await claim())?.sessionId).toBe(waiting);
  });

  it("takes the most urgent first, and of the same the oldest", async () => {
    const organizationId = await organization();
    const later = await create(organizationId);
    const last = await create(organizationId, { priority: 8 });
    const first = await create(organizationId, { priority: 2 });
    const order = [await claim(), await claim(), await claim()].map((one) => one?.sessionId);
    expect(order).toEqual([first, later, last]);
  });

  it("leaves drafts alone until they are queued", async () => {
    const organizationId = await organization();
    const id = await create(organizationId, { queueRightAway: false });
    expect(await claim()).toBeNull();
    await queueSession(database, organizationId, id);
    expect((await claim())?.sessionId).toBe(id);
  });
});

describe("a lease", () => {
  it("that ran out lets another worker take over, and refuses every write of the first", async () => {
    const organizationId = await organization();
    const id = await create(organizationId);
    const first = await claim("first", 0);
    expect(first?.sessionId).toBe(id);
    await recoverSessions(database, {});
    const second = await claim("second");
    expect(second).toMatchObject({ sessionId: id, attempt: (first?.attempt ?? 0) + 1 });
    const stale = first as Claim;
    expect(await renewClaim(database, stale, 60_000)).toBeNull();
    const notice = { type: "notice", data: { level: "info", text: "late" } } as const;
    await expect(appendClaimEvents(database, stale, [notice])).rejects.toBeInstanceOf(LeaseLostError);
    await expect(nextMessage(database, stale)).rejects.toBeInstanceOf(LeaseLostError);
    await expect(finishSession(database, stale, done)).rejects.toBeInstanceOf(LeaseLostError);
    await expect(releaseClaim(database, stale)).rejects.toBeInstanceOf(LeaseLostError);
    expect(await complete(second as Claim)).toBe("completed");
  });

  it("that is renewed is not taken away", async () => {
    const organizationId = await organization();
    const taken = await claimed(organizationId);
    expect(await renewClaim(database, taken, 60_000)).toEqual({ cancelRequested: false });
    expect(await recoverSessions(database, {})).toBe(0);
    expect(await statusOf(organizationId, taken.sessionId)).toBe("running");
  });

  it("of a worker that starts again is given up at once", async () => {
    const organizationId = await organization();
    await create(organizationId);
    const taken = await claim("this-worker");
    expect(await recoverSessions(database, { worker: "this-worker" })).toBe(1);
    expect(await statusOf(organizationId, taken?.sessionId ?? "")).toBe("queued");
  });

  it("lost five times without a finished turn ends the session, and says what to look for", async () => {
    const organizationId = await organization();
    const id = await create(organizationId);
    for (let time = 0; time < 5; time += 1) {
      expect((await claim("worker", 0))?.sessionId).toBe(id);
      await recoverSessions(database, {});
    }
    expect(await getSession(database, organizationId, id)).toMatchObject({
      status: "failed",
      failure: { code: "too_many_attempts", retryable: true },
    });
  });
});

describe("cancelling", () => {
  it("ends a queued session at once, and tells the worker of a running one", async () => {
    const organizationId = await organization();
    const queued = await create(organizationId);
    expect((await cancelSession(database, organizationId, queued)).status).toBe("cancelled");
    expect(await claim()).toBeNull();

    const taken = await claimed(organizationId);
    expect((await cancelSession(database, organizationId, taken.sessionId)).status).toBe("running");
    expect(await renewClaim(database, taken, 60_000)).toEqual({ cancelRequested: true });
  });

  it("counts also where the worker died before it heard of it", async () => {
    const organizationId = await organization();
    const id = await create(organizationId);
    await claim("worker", 0);
    await cancelSession(database, organizationId, id);
    await recoverSessions(database, {});
    expect(await statusOf(organizationId, id)).toBe("cancelled");
  });

  it("of a session that is over is refused", async () => {
    const organizationId = await organization();
    const taken = await claimed(organizationId);
    await complete(taken);
    await expect(cancelSession(database, organizationId, taken.sessionId)).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("a follow-up", () => {
  it("that races the end of the run is never lost: the session is queued again, by either of the two", async () => {
    const organizationId = await organization();
    for (let round = 0; round < 40; round += 1) {
      const taken = await claimed(organizationId);
      const first = await nextMessage(database, taken);
      await completeMessage(database, taken, first?.id ?? "", "done");
      await Promise.all([
        finishSession(database, taken, done),
        addMessage(database, organizationId, taken.sessionId, "and this", null),
      ]);
      const again = await claim();
      expect(again?.sessionId).toBe(taken.sessionId);
      expect(await nextMessage(database, again as Claim)).toMatchObject({ text: "and this", interrupted: false });
      await cancelSession(database, organizationId, taken.sessionId);
      await finishSession(database, again as Claim, { ...done, status: "cancelled" });
    }
  });

  it("is said after the turn that runs, and a turn that was cut off is told as such", async () => {
    const organizationId = await organization();
    const id = await create(organizationId);
    const first = (await claim("worker", 0)) as Claim;
    await addMessage(database, organizationId, id, "second", null);
    expect(await nextMessage(database, first)).toMatchObject({ text: "x", interrupted: false });
    await recoverSessions(database, {});
    const second = (await claim()) as Claim;
    const cutOff = await nextMessage(database, second);
    expect(cutOff).toMatchObject({ text: "x", interrupted: true });
    await completeMessage(database, second, cutOff?.id ?? "", "done");
    expect(await nextMessage(database, second)).toMatchObject({ text: "second", interrupted: false });
  });
});

describe("events", () => {
  it("are numbered from 1 without a gap, in the order of commits, by many writers at once", async () => {
    const organizationId = await organization();
    const taken = await claimed(organizationId);
    const writes = Array.from({ length: 40 }, (_, index) =>
      index % 2 === 0
        ? addMessage(database, organizationId, taken.sessionId, `message ${index}`, null).then(() => undefined)
        : appendClaimEvents(database, taken, [
            { type: "notice", data: { level: "info", text: `a${index}` } },
            { type: "notice", data: { level: "info", text: `b${index}` } },
          ]),
    );
    await Promise.all(writes);
    const page = await listEvents(database, organizationId, taken.sessionId, 0, 1_000);
    const events = page?.events ?? [];
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    // What was written in one go stands together.
    const texts = events.map((event) => (event.type === "notice" ? event.data.text : ""));
    for (let index = 1; index < 40; index += 2) expect(texts[texts.indexOf(`a${index}`) + 1]).toBe(`b${index}`);
  });

  it("come in pages that begin after a number", async () => {
    const organizationId = await organization();
    const id = await create(organizationId, { notices: ["1", "2", "3"] });
    const first = await listEvents(database, organizationId, id, 0, 2);
    expect([first?.events.length, first?.nextCursor]).toEqual([2, "2"]);
    const rest = await listEvents(database, organizationId, id, 2, 10);
    expect([rest?.events.map(({ seq }) => seq), rest?.nextCursor]).toEqual([[3, 4, 5], null]);
  });

  it("of another organization's session are not there", async () => {
    const [mine, theirs] = [await organization(), await organization()];
    const id = await create(theirs);
    expect(await listEvents(database, mine, id, 0, 10)).toBeNull();
    expect(await getSession(database, mine, id)).toBeNull();
    await expect(cancelSession(database, mine, id)).rejects.toMatchObject({ code: "not_found" });
  });
});
