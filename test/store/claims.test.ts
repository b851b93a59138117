import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { ConflictError } from "../../src/domain/errors/errors.ts";
import { finishSession, releaseClaim } from "../../src/store/queue/claims.ts";
import { LeaseLostError, recoverSessions, renewClaim, type Claim } from "../../src/store/queue/lease.ts";
import {
  appendClaimEvents,
  completeMessage,
  nextMessage,
  reopenMessages,
  saveHarness,
} from "../../src/store/queue/progress.ts";
import { retakeClaim } from "../../src/store/queue/retake.ts";
import { savePullRequest } from "../../src/store/queue/recorded-pull-requests.ts";
import { saveRepository } from "../../src/store/queue/recorded-work.ts";
import { createRepository } from "../../src/store/repositories/repositories.ts";
import { addMessage, cancelSession, getSession, queueSession } from "../../src/store/sessions/sessions.ts";
import { listSessions } from "../../src/store/sessions/list.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { waitFor } from "../wait-for.ts";
import { addOrganization, addSession, atOnce, claim, expireLease, longLeaseMs, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

afterEach(() => testDatabase.close());

const done = { status: "completed", summary: "Done.", failure: null } as const;
const gaveUp = {
  status: "failed",
  summary: null,
  failure: { code: "internal", reason: "It broke.", retryable: true, remedy: "Retry." },
} as const;

/** As if its worker had never lost the database. */
async function renewAgain({ sessionId }: Claim): Promise<void> {
  await database.pool.query("update session set lease_until = now() + interval '1 minute' where id = $1", [sessionId]);
}

async function statusOf(organizationId: string, id: string): Promise<string | undefined> {
  return (await getSession(database, organizationId, id))?.status;
}

/** The session's moves as its events tell them. */
async function movesOf(id: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ move: string }>(
    `select concat(data ->> 'from', ' > ', data ->> 'to') as move from event
     where session_id = $1 and type = 'session.status' order by seq`,
    [id],
  );
  return rows.map(({ move }) => move);
}

async function messagesOf(id: string): Promise<{ text: string; status: string }[]> {
  const { rows } = await database.pool.query<{ text: string; status: string }>(
    "select text, status from message where session_id = $1 order by position",
    [id],
  );
  return rows;
}

/** Answers every message until none is left, as the worker does. */
async function answerAll(held: Claim): Promise<void> {
  for (;;) {
    const message = await nextMessage(database, held);
    if (message === null) return;
    await completeMessage(database, held, message.id, { answer: `Answered ${message.text}`, isKept: true });
  }
}

/** How many connections to this test's database wait for a lock. */
async function waitingForLocks(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.count ?? 0;
}

describe("claiming", () => {
  test("two workers never hold one session", async () => {
    const organizationId = await addOrganization(database);
    const sessions = await atOnce(30, () => addSession(database, organizationId));
    const claims = await atOnce(40, (index) => claim(database, { worker: `worker ${index}` }));
    const taken = claims.filter((held) => held !== null).map((held) => held.sessionId);
    expect(taken.toSorted()).toEqual(sessions.map(({ id }) => id).toSorted());
  });

  test("a draft, a running and a finished session are not there to be claimed", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId, { queueRightAway: false });
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await answerAll(held);
    await finishSession(database, held, done);
    await addSession(database, organizationId);
    await requireClaim(database);
    expect(await claim(database)).toBeNull();
  });

  test("a session that was made while its claimer waited comes with everything that it has", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId, { priority: 9 });
    const url = "https://git.example/acme/late";
    const repository = { url, key: url, name: "late", branch: null, description: null };
    const late = await createRepository(database, organizationId, repository);
    const { waiting, id } = await database.transaction(async (held) => {
      await held.query("select from organization where id = $1 for no key update", [organizationId]);
      // Within an object, which no "await" on the way waits for.
      const started = { waiting: requireClaim(database) };
      await waitFor(async () => {
        const { rowCount } = await database.pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return rowCount === 1;
      }, "the claimer waits for the organization");
      const made = await addSession(database, organizationId, { priority: 1, repositories: [late] });
      return { ...started, id: made.id };
    });
    const claimed = await waiting;
    expect(claimed.sessionId).toBe(id);
    expect(claimed.repositories.map(({ name }) => name)).toEqual(["late"]);
  });

  test("an organization never runs more than its own limit under 20 concurrent claimers", async () => {
    const organizationId = await addOrganization(database, 3);
    await atOnce(25, () => addSession(database, organizationId));
    let running = 0;
    let most = 0;
    let finished = 0;
    await atOnce(20, async (index) => {
      while (finished < 25) {
        const held = await claim(database, { worker: `worker ${index}` });
        if (held === null) continue;
        running += 1;
        most = Math.max(most, running);
        await answerAll(held);
        // Counted down before the row is free, so that the count here is never above the one in the table.
        running -= 1;
        finished += 1;
        await finishSession(database, held, done);
      }
    });
    expect(finished).toBe(25);
    expect(most).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThan(1);
  });

  test("20 claimers at once take as many as the server's limit allows where the organization has none", async () => {
    const organizationId = await addOrganization(database);
    await atOnce(20, () => addSession(database, organizationId));
    const claims = await atOnce(20, () => claim(database, { maximum: 4 }));
    expect(claims.filter((held) => held !== null)).toHaveLength(4);
    expect((await listSessions(database, organizationId, { limit: 100, status: ["running"] })).items).toHaveLength(4);
  });

  test("an organization at its limit does not hold up another one", async () => {
    const busy = await addOrganization(database, 1);
    const idle = await addOrganization(database, 1);
    await addSession(database, busy, { priority: 1 });
    await addSession(database, busy, { priority: 1 });
    const waiting = await addSession(database, idle, { priority: 9 });
    expect((await requireClaim(database)).organizationId).toBe(busy);
    expect((await requireClaim(database)).sessionId).toBe(waiting.id);
    expect(await claim(database)).toBeNull();
  });

  test("however many organizations are at their limit, the one behind them is served", async () => {
    await atOnce(60, async () => {
      const organizationId = await addOrganization(database, 1);
      await addSession(database, organizationId, { priority: 1 });
      await addSession(database, organizationId, { priority: 1 });
    });
    for (let taken = 0; taken < 60; taken += 1) await requireClaim(database);
    const behind = await addSession(database, await addOrganization(database), { priority: 9 });
    expect((await requireClaim(database)).sessionId).toBe(behind.id);
  });

  test("the most urgent comes first, the oldest of the same urgency first, across organizations", async () => {
    const [one, other] = [await addOrganization(database), await addOrganization(database)];
    const late = await addSession(database, one, { priority: 9 });
    const first = await addSession(database, one, { priority: 5 });
    const second = await addSession(database, other, { priority: 5 });
    const urgent = await addSession(database, other, { priority: 1 });
    const third = await addSession(database, one, { priority: 5 });
    const order: string[] = [];
    for (let held = await claim(database); held !== null; held = await claim(database)) order.push(held.sessionId);
    expect(order).toEqual([urgent, first, second, third, late].map(({ id }) => id));
  });

  test("the place in the queue that a session shows is the one in which it is claimed", async () => {
    const organizationId = await addOrganization(database);
    const sessions = [];
    for (const priority of [5, 9, 1]) sessions.push(await addSession(database, organizationId, { priority }));
    const shown = await Promise.all(sessions.map(({ id }) => getSession(database, organizationId, id)));
    expect(shown.map((session) => session?.queuePosition)).toEqual([1, 2, 0]);
  });

  test("claimers that try two organizations in opposite orders don't block each other", async () => {
    const [one, other] = [await addOrganization(database, 2), await addOrganization(database, 2)];
    for (const organizationId of [one, other]) {
      await addSession(database, organizationId, { priority: 3 });
      await requireClaim(database);
    }
    await addSession(database, one, { priority: 3 });
    await addSession(database, other, { priority: 5 });
    const holders = await Promise.all([database.pool.connect(), database.pool.connect()]);
    const [holdsOne, holdsOther] = holders;
    try {
      // Both reach their limit while a claimer waits for each.
      for (const [holder, organizationId] of [
        [holdsOne, one],
        [holdsOther, other],
      ] as const) {
        await holder.query("begin");
        await holder.query("update organization set max_running_sessions = 1 where id = $1", [organizationId]);
      }
      const first = claim(database);
      await waitFor(async () => (await waitingForLocks()) === 1, "the first claimer waits");
      await makeUrgent(other);
      const second = claim(database);
      await waitFor(async () => (await waitingForLocks()) === 2, "the second claimer waits");
      await holdsOther.query("commit");
      await holdsOne.query("commit");
      expect(await Promise.all([first, second])).toEqual([null, null]);
    } finally {
      for (const holder of holders) holder.release(true);
    }
  });

  async function makeUrgent(organizationId: string): Promise<void> {
    await database.pool.query("update session set priority = 1 where organization_id = $1 and status = 'queued'", [
      organizationId,
    ]);
  }

  test("a session can be created while a claim holds its organization", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const holder = await database.pool.connect();
    try {
      // The claim has the organization by now, and waits for this lock to announce its move.
      await holder.query("begin");
      await holder.query("lock table event in exclusive mode");
      const claiming = claim(database);
      claiming.catch(() => undefined);
      await waitFor(async () => (await waitingForLocks()) === 1, "the claim waits");
      // What the new session's foreign key asks for.
      await holder.query("select 1 from organization where id = $1 for key share nowait", [organizationId]);
      await holder.query("commit");
      expect(await claiming).not.toBeNull();
    } finally {
      holder.release(true);
    }
  });
});

describe("lease and fence", () => {
  test("a lease that ran out is taken over by another worker under a higher attempt", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const old = await requireClaim(database, { worker: "old" });
    expect(await recoverSessions(database, {})).toBe(0);
    await expireLease(database, old.sessionId);
    expect(await recoverSessions(database, {})).toBe(1);
    const fresh = await requireClaim(database, { worker: "fresh" });
    expect(fresh).toMatchObject({ sessionId: old.sessionId, attempt: old.attempt + 1 });
    expect(await movesOf(old.sessionId)).toEqual(["queued > running", "running > queued", "queued > running"]);
  });

  test("every write of the old holder is refused and changes nothing", async () => {
    const organizationId = await addOrganization(database);
    const repositoryId = crypto.randomUUID();
    await database.pool.query(
      "insert into repository (id, organization_id, name, url, address_key) values ($1, $2, 'a', 'https://h/a', 'h/a')",
      [repositoryId, organizationId],
    );
    await addSession(database, organizationId, { repositories: [{ id: repositoryId, name: "a" }] });
    const old = await requireClaim(database);
    const message = await nextMessage(database, old);
    await expireLease(database, old.sessionId);
    await recoverSessions(database, {});
    const fresh = await requireClaim(database);
    const before = await everythingOf(old.sessionId);
    const pullRequest = { repositoryId, head: "h", target: "t", headSha: "s", number: 1, url: "https://h/a/1" };
    const opened = { ...pullRequest, state: "open" } as const;
    const writes = [
      () => appendClaimEvents(database, old, [{ type: "notice", data: { level: "info", text: "late" } }]),
      () => nextMessage(database, old),
      () => completeMessage(database, old, message?.id ?? "", { answer: "late", isKept: true }),
      () => saveHarness(database, old, { provider: "late", sessionId: "late" }),
      () => saveRepository(database, old, 1, { baseSha: "late", patch: "late" }),
      () => savePullRequest(database, old, opened),
      () => finishSession(database, old, done),
      () => releaseClaim(database, old),
    ];
    for (const write of writes) await expect(write()).rejects.toThrow(LeaseLostError);
    expect(await renewClaim(database, old, longLeaseMs)).toBeNull();
    expect(await everythingOf(old.sessionId)).toEqual(before);
    await answerAll(fresh);
    expect(await finishSession(database, fresh, done)).toBe("completed");
  });

  async function everythingOf(id: string): Promise<unknown> {
    const tables = {
      session: "id",
      session_repository: "session_id",
      message: "session_id",
      event: "session_id",
      pull_request: "session_id",
    };
    const all = Object.entries(tables).map(([table, column]) =>
      database.pool.query(`select * from ${table} where ${column} = $1 order by ctid`, [id]),
    );
    return (await Promise.all(all)).map(({ rows }) => rows as unknown);
  }

  test("a holder whose session is over is refused as well", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await answerAll(held);
    await finishSession(database, held, done);
    await expect(finishSession(database, held, done)).rejects.toThrow(LeaseLostError);
    await expect(nextMessage(database, held)).rejects.toThrow(LeaseLostError);
    expect(await renewClaim(database, held, longLeaseMs)).toBeNull();
  });

  test("a lease that is renewed is not taken over", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database, { leaseMs: 60_000 });
    expect(await renewClaim(database, held, 300_000)).toEqual({ cancelRequested: false });
    // What would be the end of the lease without the renewal.
    await database.pool.query("update session set lease_until = lease_until - interval '1 minute' where id = $1", [
      held.sessionId,
    ]);
    expect(await recoverSessions(database, {})).toBe(0);
    expect(await statusOf(organizationId, held.sessionId)).toBe("running");
  });

  test("of many recoveries at once one alone moves the session", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await expireLease(database, held.sessionId);
    await atOnce(10, () => recoverSessions(database, {}));
    expect(await movesOf(held.sessionId)).toEqual(["queued > running", "running > queued"]);
  });

  test("a worker that starts again takes up its own sessions at once, and no other's", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    await addSession(database, organizationId);
    const mine = await requireClaim(database, { worker: "mine" });
    const other = await requireClaim(database, { worker: "other" });
    expect(await recoverSessions(database, { worker: "mine" })).toBe(1);
    expect(await statusOf(organizationId, mine.sessionId)).toBe("queued");
    expect(await statusOf(organizationId, other.sessionId)).toBe("running");
  });

  test("what its own worker takes again has a new fence, which no write of the old one passes", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const old = await requireClaim(database, { worker: "own" });
    const begun = await nextMessage(database, old);
    await expireLease(database, old.sessionId);
    const again = await retakeClaim(database, old, { worker: "own", leaseMs: longLeaseMs });
    expect(again).toMatchObject({
      sessionId: old.sessionId,
      organizationId,
      attempt: old.attempt + 1,
      title: old.title,
    });
    await expect(nextMessage(database, old)).rejects.toThrow(LeaseLostError);
    expect(await renewClaim(database, old, longLeaseMs)).toBeNull();
    expect(await recoverSessions(database, {})).toBe(0);
    expect(await nextMessage(database, again as Claim)).toEqual({ ...begun, interrupted: true });
    expect(await movesOf(old.sessionId)).toEqual(["queued > running"]);
    expect(await retakeClaim(database, old, { worker: "own", leaseMs: longLeaseMs })).toBeNull();
  });

  test.each<[string, (held: Claim) => Promise<unknown>]>([
    ["was requeued", () => recoverSessions(database, {})],
    ["has another worker", async () => (await recoverSessions(database, {}), claim(database, { worker: "other" }))],
    ["has ended", async (held) => (await renewAgain(held), finishSession(database, held, gaveUp))],
    ["is to be cancelled", (held) => cancelSession(database, held.organizationId, held.sessionId)],
    ["was deleted", (held) => database.pool.query("delete from session where id = $1", [held.sessionId])],
  ])("a session that %s meanwhile is not taken again by its worker", async (_, meanwhile) => {
    await addSession(database, await addOrganization(database));
    const held = await requireClaim(database, { worker: "own" });
    await expireLease(database, held.sessionId);
    await meanwhile(held);
    expect(await retakeClaim(database, held, { worker: "own", leaseMs: longLeaseMs })).toBeNull();
  });

  test("of many workers that take sessions again each gets its own", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database, { worker: "own" });
    await expireLease(database, held.sessionId);
    expect(await retakeClaim(database, held, { worker: "other", leaseMs: longLeaseMs })).toBeNull();
    const taken = await atOnce(5, () => retakeClaim(database, held, { worker: "own", leaseMs: longLeaseMs }));
    expect(taken.filter((each) => each !== null)).toHaveLength(1);
  });

  test("a message that the dead worker had begun is given again, marked as interrupted", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const old = await requireClaim(database);
    const begun = await nextMessage(database, old);
    expect(begun?.interrupted).toBe(false);
    await expireLease(database, old.sessionId);
    await recoverSessions(database, {});
    expect(await nextMessage(database, await requireClaim(database))).toEqual({ ...begun, interrupted: true });
  });

  test("a waiting session whose worker died goes back in the queue, and holds up no other's recovery", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    await addSession(database, organizationId);
    const [waiting, running] = [await requireClaim(database), await requireClaim(database)];
    await database.pool.query("update session set status = 'waiting' where id = $1", [waiting.sessionId]);
    for (const { sessionId } of [waiting, running]) await expireLease(database, sessionId);
    expect(await recoverSessions(database, {})).toBe(2);
    expect(await statusOf(organizationId, waiting.sessionId)).toBe("queued");
    expect(await statusOf(organizationId, running.sessionId)).toBe("queued");
    expect((await movesOf(waiting.sessionId)).slice(1)).toEqual(["waiting > running", "running > queued"]);
  });
});

test("a session whose worker died keeps its place before those that were queued after it", async () => {
  const organizationId = await addOrganization(database);
  const first = await addSession(database, organizationId);
  const held = await requireClaim(database);
  expect(held.sessionId).toBe(first.id);
  await atOnce(3, () => addSession(database, organizationId));
  await expireLease(database, first.id);
  await recoverSessions(database, {});
  expect((await requireClaim(database)).sessionId).toBe(first.id);
});

test("a session that is queued or runs can't be queued by a person, and stays with its worker", async () => {
  const organizationId = await addOrganization(database);
  const { id } = await addSession(database, organizationId);
  await expect(queueSession(database, organizationId, id)).rejects.toThrow(/is already queued/u);
  const held = await requireClaim(database);
  await expect(queueSession(database, organizationId, id)).rejects.toThrow(/is already running/u);
  expect(await claim(database)).toBeNull();
  expect(await renewClaim(database, held, longLeaseMs)).toEqual({ cancelRequested: false });
});

describe("attempts", () => {
  async function loseWorker(): Promise<Claim> {
    const held = await requireClaim(database);
    await expireLease(database, held.sessionId);
    await recoverSessions(database, {});
    // The time of the retry has come, as if it had passed.
    await database.pool.query("update session set retry_at = null where id = $1", [held.sessionId]);
    return held;
  }

  test("a session that killed ten workers in a row fails, and says so", async () => {
    const organizationId = await addOrganization(database);
    const { id } = await addSession(database, organizationId);
    for (let lost = 1; lost <= 9; lost += 1) await loseWorker();
    expect(await statusOf(organizationId, id)).toBe("queued");
    await loseWorker();
    const session = await getSession(database, organizationId, id);
    expect(session).toMatchObject({ status: "failed", failure: { code: "too_many_attempts", retryable: true } });
    expect(session?.failure?.reason).toContain("10 times");
    expect(await claim(database)).toBeNull();
  });

  test.each([
    ["a finished turn", (held: Claim) => answerAll(held)],
    ["a worker that shut down in order", (held: Claim) => releaseClaim(database, held)],
    [
      "a follow-up message",
      (held: Claim) =>
        addMessage(database, held.organizationId, held.sessionId, {
          id: crypto.randomUUID(),
          text: "And?",
          from: null,
        }),
    ],
  ])("%s starts the count anew", async (_name, progress) => {
    const organizationId = await addOrganization(database);
    const { id } = await addSession(database, organizationId);
    for (let lost = 1; lost <= 9; lost += 1) await loseWorker();
    const held = await requireClaim(database);
    await progress(held);
    await expireLease(database, id);
    await recoverSessions(database, {});
    expect(await statusOf(organizationId, id)).toBe("queued");
  });

  test("a retry of a session that was given up has all its attempts again", async () => {
    const organizationId = await addOrganization(database);
    const { id } = await addSession(database, organizationId);
    for (let lost = 1; lost <= 10; lost += 1) await loseWorker();
    await queueSession(database, organizationId, id);
    for (let lost = 1; lost <= 9; lost += 1) await loseWorker();
    expect(await getSession(database, organizationId, id)).toMatchObject({ status: "queued", failure: null });
  });
});

describe("cancel", () => {
  test.each([true, false])("a session that does not run is cancelled at once (queued: %s)", async (queueRightAway) => {
    const organizationId = await addOrganization(database);
    const { id } = await addSession(database, organizationId, { queueRightAway });
    expect((await cancelSession(database, organizationId, id)).status).toBe("cancelled");
    expect(await claim(database)).toBeNull();
    await expect(cancelSession(database, organizationId, id)).rejects.toThrow(ConflictError);
  });

  test("a claim and a cancel at the same time: either nothing runs, or the worker learns of it", async () => {
    const organizationId = await addOrganization(database);
    const learned: boolean[] = [];
    for (let round = 0; round < 50; round += 1) {
      const { id } = await addSession(database, organizationId);
      const [held] = await Promise.all([claim(database), cancelSession(database, organizationId, id)]);
      const renewed = held === null ? null : await renewClaim(database, held, longLeaseMs);
      learned.push(renewed === null ? (await statusOf(organizationId, id)) === "cancelled" : renewed.cancelRequested);
      if (held !== null) await finishSession(database, held, { ...done, status: "cancelled" });
    }
    expect(learned).toEqual(learned.map(() => true));
  });

  test("a claim that was about to take a session that is cancelled at that moment takes the next", async () => {
    const organizationId = await addOrganization(database);
    const cancelled = await addSession(database, organizationId);
    const next = await addSession(database, organizationId);
    const { claiming } = await database.transaction(async (holder) => {
      await holder.query("select move_session($1, 'cancelled', null, null, null, false, waits_for => null)", [
        cancelled.id,
      ]);
      // Within an object, which no "await" on the way waits for.
      const started = { claiming: requireClaim(database) };
      await waitFor(async () => (await waitingForLocks()) === 1, "the claim waits for the cancelled session");
      return started;
    });
    expect((await claiming).sessionId).toBe(next.id);
    expect(await statusOf(organizationId, cancelled.id)).toBe("cancelled");
    expect(await movesOf(cancelled.id)).toEqual(["queued > cancelled"]);
  });

  test("the worker of a running session hears of the cancel, sees it when it renews, and ends it", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    const heard: string[] = [];
    const subscription = await database.listen("offstage_cancel", (id) => heard.push(id));
    expect((await cancelSession(database, organizationId, held.sessionId)).status).toBe("running");
    await waitFor(() => heard.includes(held.sessionId), "the cancel is heard");
    expect(await renewClaim(database, held, longLeaseMs)).toEqual({ cancelRequested: true });
    expect(await finishSession(database, held, { ...done, status: "cancelled" })).toBe("cancelled");
    await subscription.close();
  });

  test("a cancel outlives the death of the worker that should have heard it", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await cancelSession(database, organizationId, held.sessionId);
    await expireLease(database, held.sessionId);
    await recoverSessions(database, {});
    expect(await statusOf(organizationId, held.sessionId)).toBe("cancelled");
  });

  test("a cancel is not forgotten by a worker that shuts down at that moment", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await cancelSession(database, organizationId, held.sessionId);
    await releaseClaim(database, held);
    expect(await statusOf(organizationId, held.sessionId)).toBe("cancelled");
  });

  test("a cancel is not forgotten where the run completes at that moment and a follow-up waits", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await answerAll(held);
    await addMessage(database, organizationId, held.sessionId, { id: crypto.randomUUID(), text: "And?", from: null });
    await cancelSession(database, organizationId, held.sessionId);
    expect(await finishSession(database, held, done)).toBe("cancelled");
    expect(await claim(database)).toBeNull();
  });

  test("a cancel of the last run does not reach the next", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await cancelSession(database, organizationId, held.sessionId);
    await finishSession(database, held, { ...done, status: "cancelled" });
    await queueSession(database, organizationId, held.sessionId);
    expect(await renewClaim(database, await requireClaim(database), longLeaseMs)).toEqual({ cancelRequested: false });
  });
});

describe("follow-up messages", () => {
  test("one that arrives while the run finishes is never lost", async () => {
    const organizationId = await addOrganization(database);
    const sessions = await atOnce(200, () => addSession(database, organizationId));
    const reached = new Set<string>();
    for (let round = 0; round < 20; round += 1) {
      const claims = await atOnce(10, () => requireClaim(database));
      await Promise.all(claims.map((held) => answerAll(held)));
      await Promise.all(
        claims.map(async (held, index) => {
          const end = async () => reached.add(await finishSession(database, held, done));
          const say = () =>
            addMessage(database, organizationId, held.sessionId, { id: crypto.randomUUID(), text: "And?", from: null });
          await Promise.all(index % 2 === 0 ? [end(), say()] : [say(), end()]);
        }),
      );
      await database.pool.query("update session set priority = 9 where id = any($1)", [
        claims.map(({ sessionId }) => sessionId),
      ]);
    }
    // The message came now before the end, now after it.
    expect([...reached].toSorted()).toEqual(["completed", "queued"]);
    for (let held = await claim(database); held !== null; held = await claim(database)) {
      await answerAll(held);
      await finishSession(database, held, done);
    }
    for (const { id } of sessions) {
      expect(await messagesOf(id)).toEqual([
        { text: "Work", status: "done" },
        { text: "And?", status: "done" },
      ]);
      expect(await statusOf(organizationId, id)).toBe("completed");
    }
  });

  test("one that came after the last look for messages puts the session back in the queue", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await answerAll(held);
    await addMessage(database, organizationId, held.sessionId, { id: crypto.randomUUID(), text: "And?", from: null });
    expect(await finishSession(database, held, done)).toBe("queued");
    expect(await nextMessage(database, await requireClaim(database))).toMatchObject({
      text: "And?",
      interrupted: false,
    });
  });

  test("one to a session that is over queues it again, its failure forgotten", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await finishSession(database, held, gaveUp);
    const session = await addMessage(database, organizationId, held.sessionId, {
      id: crypto.randomUUID(),
      text: "And?",
      from: null,
    });
    expect(session).toMatchObject({ status: "queued", failure: null, finishedAt: null });
    await answerAll(await requireClaim(database));
    expect((await messagesOf(held.sessionId)).map(({ status }) => status)).toEqual(["done", "done"]);
  });

  test("one that came during a run that failed is answered after the retry", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await nextMessage(database, held);
    await addMessage(database, organizationId, held.sessionId, { id: crypto.randomUUID(), text: "And?", from: null });
    expect(await finishSession(database, held, gaveUp)).toBe("failed");
    await queueSession(database, organizationId, held.sessionId);
    await answerAll(await requireClaim(database));
    expect((await messagesOf(held.sessionId)).map(({ status }) => status)).toEqual(["done", "done"]);
  });

  test("one to a session that is being cancelled is refused until it is over, so that it is not cancelled too", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await cancelSession(database, organizationId, held.sessionId);
    const refused = addMessage(database, organizationId, held.sessionId, {
      id: crypto.randomUUID(),
      text: "This instead",
      from: null,
    });
    await expect(refused).rejects.toMatchObject({ code: "conflict", retryAfterMs: 1_000 });
    await finishSession(database, held, { ...done, status: "cancelled" });
    expect(
      (
        await addMessage(database, organizationId, held.sessionId, {
          id: crypto.randomUUID(),
          text: "This instead",
          from: null,
        })
      ).status,
    ).toBe("queued");
  });

  test("one after a cancel takes the place of what was cancelled, and of nothing that was not begun", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await nextMessage(database, held);
    const send = (text: string): Promise<unknown> =>
      addMessage(database, organizationId, held.sessionId, { id: crypto.randomUUID(), text, from: null });
    await send("Later");
    await finishSession(database, held, { ...done, status: "cancelled" });
    await send("This instead");
    const again = await requireClaim(database);
    // Also where the folders are lost.
    expect(await reopenMessages(database, again, "all")).toBe(0);
    expect(await nextMessage(database, again)).toMatchObject({ text: "Later", interrupted: false });
    await answerAll(again);
    expect((await messagesOf(held.sessionId)).map(({ text }) => text).at(-1)).toBe("This instead");
  });

  test("a retry after a cancel asks what was cancelled", async () => {
    const organizationId = await addOrganization(database);
    await addSession(database, organizationId);
    const held = await requireClaim(database);
    await nextMessage(database, held);
    await finishSession(database, held, { ...done, status: "cancelled" });
    await queueSession(database, organizationId, held.sessionId);
    expect(await nextMessage(database, await requireClaim(database))).toMatchObject({ text: "Work" });
  });

  test("many at once keep their order, and each is answered once", async () => {
    const organizationId = await addOrganization(database);
    const { id } = await addSession(database, organizationId);
    await atOnce(20, (index) =>
      addMessage(database, organizationId, id, { id: crypto.randomUUID(), text: `message ${index}`, from: null }),
    );
    const held = await requireClaim(database);
    const answered: string[] = [];
    for (
      let message = await nextMessage(database, held);
      message !== null;
      message = await nextMessage(database, held)
    ) {
      answered.push(message.text);
      await completeMessage(database, held, message.id, { answer: "Yes.", isKept: true });
    }
    expect(new Set(answered).size).toBe(21);
    const { rows } = await database.pool.query<{ text: string }>(
      "select data ->> 'text' as text from event where session_id = $1 and type = 'message.user' order by seq",
      [id],
    );
    expect(answered).toEqual(rows.map(({ text }) => text));
  });
});
