import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { ConflictError, type Failure } from "../../src/domain/errors/errors.ts";
import { finishSession, releaseClaim } from "../../src/store/queue/claims.ts";
import {
  LeaseLostError,
  recordSurvival,
  recoverSessions,
  renewClaim,
  type Claim,
} from "../../src/store/queue/lease.ts";
import { appendClaimEvents, completeMessage, nextMessage } from "../../src/store/queue/progress.ts";
import { retakeClaim } from "../../src/store/queue/retake.ts";
import { failSession, wakeRetries, type RetryOptions } from "../../src/store/queue/retry.ts";
import { listEvents } from "../../src/store/sessions/events.ts";
import { addMessage, cancelSession, queueSession, requireSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, claim, expireLease, longLeaseMs, requireClaim } from "./fixtures.ts";

const away: Failure = {
  code: "forge_unavailable",
  reason: "The forge is away.",
  retryable: true,
  passing: true,
  remedy: "Wait.",
};
const crash: Failure = { ...away, code: "agent_crashed", reason: "It crashed." };
const day = { forMs: 24 * 3_600_000 };

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;
let id: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

afterAll(() => testDatabase.close());

beforeEach(async () => {
  await database.pool.query("truncate session cascade");
  organizationId = await addOrganization(database);
  ({ id } = await addSession(database, organizationId));
});

/** The time of the retry has come, as if it had passed. */
async function pass(): Promise<void> {
  await database.pool.query("update session set retry_at = now() - interval '1 second' where retry_at is not null");
}

/** Claims the session, and lets the attempt fail. */
async function failOnce(failure: Failure, options: RetryOptions = day): Promise<string> {
  return failSession(database, await requireClaim(database), failure, options);
}

/** As `failOnce`, then the time of the retry comes. */
async function failAndWake(failure: Failure): Promise<string> {
  const reached = await failOnce(failure);
  await pass();
  await wakeRetries(database);
  return reached;
}

const read = () => requireSession(database, organizationId, id);

describe("a session whose attempt failed for a passing reason", () => {
  test("is queued, and says why, when and how often", async () => {
    const before = Date.now();
    expect(await failOnce(away)).toBe("queued");
    const session = await read();
    expect(session).toMatchObject({ status: "queued", failure: null, queuePosition: null });
    expect(session.retry).toEqual({
      at: expect.any(String) as string,
      reason: away.reason,
      code: away.code,
      attempt: 1,
    });
    const at = Date.parse(session.retry?.at ?? "");
    expect(at).toBeGreaterThanOrEqual(before - 1_000);
    expect(at).toBeLessThanOrEqual(Date.now() + 1_000);
    const page = await listEvents(database, organizationId, id, 0, 100);
    expect(page?.events.at(-1)).toMatchObject({
      type: "session.status",
      data: { from: "running", to: "queued", reason: away.reason, retry: session.retry },
    });
  });

  test("is not claimed before its time, and is afterwards", async () => {
    await failOnce(away, { ...day, retryAfterMs: 60_000 });
    expect(await wakeRetries(database)).toBe(0);
    expect(await claim(database)).toBeNull();
    await pass();
    expect(await wakeRetries(database)).toBe(1);
    expect((await read()).retry).toBeNull();
    expect((await requireClaim(database)).sessionId).toBe(id);
  });

  test("keeps its place before those that were queued after it", async () => {
    const held = await requireClaim(database);
    await addSession(database, organizationId);
    await failSession(database, held, away, day);
    await pass();
    await wakeRetries(database);
    expect((await requireClaim(database)).sessionId).toBe(id);
  });

  test("waits as long as the service asked", async () => {
    await failOnce(away, { ...day, retryAfterMs: 300_000 });
    const at = Date.parse((await read()).retry?.at ?? "");
    expect(at - Date.now()).toBeGreaterThan(290_000);
  });

  test.each([
    ["a person queues it", () => queueSession(database, organizationId, id)],
    [
      "a message arrives",
      () => addMessage(database, organizationId, id, { id: crypto.randomUUID(), text: "More", from: null }),
    ],
  ])("may be claimed at once if %s, and what failed before is forgotten", async (_, ask) => {
    await failOnce(away, { ...day, retryAfterMs: 300_000 });
    expect(await claim(database)).toBeNull();
    await ask();
    expect(await read()).toMatchObject({ status: "queued", retry: null });
    expect(await failOnce(away)).toBe("queued");
    expect((await read()).retry?.attempt).toBe(1);
  });

  test("can be cancelled, and is not tried again", async () => {
    await failOnce(away);
    expect((await cancelSession(database, organizationId, id)).status).toBe("cancelled");
    await pass();
    expect(await wakeRetries(database)).toBe(0);
    expect(await read()).toMatchObject({ status: "cancelled", retry: null });
    expect(await claim(database)).toBeNull();
  });

  test("is cancelled instead if that was requested", async () => {
    const held = await requireClaim(database);
    await cancelSession(database, organizationId, id);
    expect(await failSession(database, held, away, day)).toBe("cancelled");
    expect(await read()).toMatchObject({ status: "cancelled", failure: null });
  });

  test("fails once the failure has not passed in time, and says the last reason", async () => {
    await failAndWake(away);
    await database.pool.query("update session set retry = jsonb_set(retry, '{since}', to_jsonb(1))");
    expect(await failOnce(away)).toBe("failed");
    expect(await read()).toMatchObject({ status: "failed", failure: away, retry: null });
  });

  test("counts anew after a turn that ended", async () => {
    for (let times = 1; times <= 3; times += 1) expect(await failAndWake(crash)).toBe("queued");
    const held = await requireClaim(database);
    const message = await nextMessage(database, held);
    await completeMessage(database, held, message?.id ?? "", { answer: "Done.", isKept: true });
    expect(await failSession(database, held, crash, day)).toBe("queued");
    expect((await read()).retry?.attempt).toBe(1);
  });
});

test("a crash is resumed three times, then fails", async () => {
  const reached: string[] = [];
  for (let times = 1; times <= 4; times += 1) reached.push(await failAndWake(crash));
  expect(reached).toEqual(["queued", "queued", "queued", "failed"]);
  expect(await read()).toMatchObject({ status: "failed", failure: { code: "agent_crashed" } });
});

test("a final failure fails at once", async () => {
  expect(await failOnce({ ...away, passing: false })).toBe("failed");
});

describe("attempts that failed for passing reasons, or were handed back,", () => {
  test.each<[string, (held: Claim) => Promise<unknown>]>([
    ["a passing failure", (held) => failSession(database, held, away, day)],
    ["a database that was away", (held) => releaseClaim(database, held, "no database")],
    ["a worker's shutdown", (held) => releaseClaim(database, held)],
  ])("count as no dead worker: %s", async (_, end) => {
    for (let times = 1; times <= 6; times += 1) {
      await end(await requireClaim(database));
      await pass();
      await wakeRetries(database);
    }
    const held = await requireClaim(database);
    await expireLease(database, held.sessionId);
    await recoverSessions(database, {});
    expect((await read()).status).toBe("queued");
  });
});

test("an attempt that its worker outlived counts a quarter of a dead worker", async () => {
  const lost = async (): Promise<string> => {
    const held = await requireClaim(database);
    await expireLease(database, id);
    await recoverSessions(database, {});
    await recordSurvival(database, held);
    await database.pool.query("update session set retry_at = null");
    return (await read()).status;
  };
  let times = 0;
  while (times < 100 && (await lost()) === "queued") times += 1;
  expect(times).toBe(33);
  expect(await read()).toMatchObject({ status: "failed", failure: { code: "too_many_attempts" } });
});

test("a session that its own worker takes again and again counts a quarter of a dead worker each time", async () => {
  let held: Claim | null = await requireClaim(database, { worker: "own" });
  let times = 0;
  while (times < 100 && held !== null) {
    await expireLease(database, id);
    await recordSurvival(database, held);
    held = await retakeClaim(database, held, { worker: "own", leaseMs: 60_000 });
    if (held !== null) times += 1;
  }
  expect(times).toBe(33);
  await recoverSessions(database, {});
  expect(await read()).toMatchObject({ status: "failed", failure: { code: "too_many_attempts" } });
});

test("a dead worker between two failures changes their count in no way", async () => {
  await failAndWake(crash);
  await requireClaim(database);
  await expireLease(database, id);
  await recoverSessions(database, {});
  await failOnce(crash);
  expect((await read()).retry?.attempt).toBe(2);
});

describe("a worker whose lease has expired", () => {
  test.each<[string, (held: Claim) => Promise<unknown>]>([
    ["an event", (held) => appendClaimEvents(database, held, [{ type: "notice", data: { level: "info", text: "x" } }])],
    ["a message's beginning", (held) => nextMessage(database, held)],
    ["its end", (held) => finishSession(database, held, { status: "completed", summary: null, failure: null })],
    ["a passing failure", (held) => failSession(database, held, away, day)],
    ["handing it back", (held) => releaseClaim(database, held)],
  ])("can't write %s, even if no worker has the session yet", async (_, write) => {
    const held = await requireClaim(database);
    await expireLease(database, id);
    await expect(write(held)).rejects.toBeInstanceOf(LeaseLostError);
    expect((await read()).status).toBe("running");
    // With a moment of the lease left by the database's clock the same write is taken.
    await database.pool.query(
      "update session set lease_until = clock_timestamp() + interval '1 minute' where id = $1",
      [id],
    );
    await write(held);
  });

  test.each([
    ["ahead", 3_600_000],
    ["behind", -3_600_000],
  ])("has it by the database's clock, if its own is an hour %s", async (_, wrongBy) => {
    const note = [{ type: "notice", data: { level: "info", text: "x" } }] as const;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + wrongBy });
    try {
      const held = await requireClaim(database);
      expect(await renewClaim(database, held, longLeaseMs)).toEqual({ cancelRequested: false });
      await appendClaimEvents(database, held, note);
      await recoverSessions(database, {});
      expect((await read()).status).toBe("running");
      const { rows } = await database.pool.query<{ left: number }>(
        "select extract(epoch from lease_until - clock_timestamp())::float8 * 1000 as left from session where id = $1",
        [id],
      );
      expect(rows[0]?.left).toBeGreaterThan(0);
      expect(rows[0]?.left).toBeLessThanOrEqual(longLeaseMs);
      await expireLease(database, id);
      expect(await renewClaim(database, held, longLeaseMs)).toBeNull();
      await expect(appendClaimEvents(database, held, note)).rejects.toBeInstanceOf(LeaseLostError);
      await recoverSessions(database, {});
      expect((await read()).status).toBe("queued");
    } finally {
      vi.useRealTimers();
    }
  });

  test("can't renew it", async () => {
    const held = await requireClaim(database);
    expect(await renewClaim(database, held, longLeaseMs)).toEqual({ cancelRequested: false });
    await expireLease(database, id);
    expect(await renewClaim(database, held, longLeaseMs)).toBeNull();
  });
});

test("a session that is queued for no retry can't be queued again", async () => {
  await expect(queueSession(database, organizationId, id)).rejects.toBeInstanceOf(ConflictError);
});
