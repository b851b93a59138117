import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { updateOrganization } from "../../src/store/people/organizations.ts";
import { budgetLeft, setSessionBudget, spend, wakeWaiting } from "../../src/store/queue/budgets.ts";
import { finishSession, parkSession } from "../../src/store/queue/claims.ts";
import { LeaseLostError } from "../../src/store/queue/lease.ts";
import { appendClaimEvents } from "../../src/store/queue/progress.ts";
import { cancelSession, getSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, atOnce, claim, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

beforeEach(async () => {
  await database.pool.query("update session set status = 'cancelled' where status in ('queued', 'running', 'waiting')");
  organizationId = await addOrganization(database);
});

afterAll(() => testDatabase?.close());

const done = { status: "completed", summary: null, failure: null } as const;
const statusOf = async (id: string) => (await getSession(database, organizationId, id))?.status;

it("counts what requests cost, on the session and in the month, when they come at once too", async () => {
  await updateOrganization(database, organizationId, { sessionBudgetUsd: 2, monthlyBudgetUsd: 10 });
  const { id } = await addSession(database, organizationId);
  const held = await requireClaim(database);
  await atOnce(20, () => spend(database, held, 0.05));
  expect(await getSession(database, organizationId, id)).toMatchObject({ spentUsd: 1, budgetUsd: 2 });
  expect(await budgetLeft(database, id)).toEqual({ session: 1, month: 9 });
  expect((await updateOrganization(database, organizationId, {})).spentUsd).toBe(1);
});

it("has no limit if none is set", async () => {
  const { id } = await addSession(database, organizationId);
  expect(await budgetLeft(database, id)).toEqual({ session: null, month: null });
});

it("reserves a session's budget while it runs, so that sessions that run at once can't spend the same money", async () => {
  await updateOrganization(database, organizationId, { sessionBudgetUsd: 4, monthlyBudgetUsd: 10 });
  await atOnce(4, () => addSession(database, organizationId));
  const claims = (await atOnce(4, () => claim(database))).filter((held) => held !== null);
  // 4 + 4 + the 2 that are left: the fourth finds nothing.
  expect(claims).toHaveLength(3);
  const { rows } = await database.pool.query<{ reserved: number }>(
    "select sum(reserved_usd)::float8 as reserved from session where organization_id = $1",
    [organizationId],
  );
  expect(rows[0]?.reserved).toBe(10);
  const waiting = await database.pool.query<{ id: string; waiting: { text: string } }>(
    "select id, waiting from session where organization_id = $1 and status = 'waiting'",
    [organizationId],
  );
  expect(waiting.rows[0]?.waiting.text).toContain("budget for this month");
  // One of them ends without spending it: what it held is free.
  if (claims[0] !== undefined) await finishSession(database, claims[0], done);
  expect(await wakeWaiting(database)).toBe(1);
  expect((await claim(database))?.sessionId).toBe(waiting.rows[0]?.id);
});

it("parks a session that has spent all, without a worker, until its budget is raised", async () => {
  await updateOrganization(database, organizationId, { sessionBudgetUsd: 1 });
  const { id } = await addSession(database, organizationId);
  const held = await requireClaim(database);
  await spend(database, held, 1.5);
  await parkSession(database, held, "used up");
  expect(await getSession(database, organizationId, id)).toMatchObject({
    status: "waiting",
    waiting: { reason: "budget", text: "used up" },
  });
  await expect(appendClaimEvents(database, held, [])).rejects.toThrow(LeaseLostError);
  expect(await wakeWaiting(database)).toBe(0);
  expect(await claim(database)).toBeNull();
  await setSessionBudget(database, organizationId, id, 2);
  const again = await requireClaim(database);
  expect(again.sessionId).toBe(id);
  expect(again.attempt).toBeGreaterThan(held.attempt);
  expect(await statusOf(id)).toBe("running");
});

it("lets a session wait at once that has nothing left when its turn comes", async () => {
  await updateOrganization(database, organizationId, { sessionBudgetUsd: 0 });
  const { id } = await addSession(database, organizationId);
  expect(await claim(database)).toBeNull();
  expect(await statusOf(id)).toBe("waiting");
  await updateOrganization(database, organizationId, { sessionBudgetUsd: null });
  expect((await claim(database))?.sessionId).toBe(id);
});

it("cancels a session that waits for its budget at once", async () => {
  await updateOrganization(database, organizationId, { sessionBudgetUsd: 0 });
  const { id } = await addSession(database, organizationId);
  await claim(database);
  await cancelSession(database, organizationId, id);
  expect(await statusOf(id)).toBe("cancelled");
});

it("goes on in a new month", async () => {
  await updateOrganization(database, organizationId, { monthlyBudgetUsd: 1 });
  const { id } = await addSession(database, organizationId);
  const held = await requireClaim(database);
  await spend(database, held, 1);
  await parkSession(database, held, "used up");
  expect(await wakeWaiting(database)).toBe(0);
  await database.pool.query("update model_spend set month = month - interval '1 month' where organization_id = $1", [
    organizationId,
  ]);
  expect(await wakeWaiting(database)).toBe(1);
  expect((await claim(database))?.sessionId).toBe(id);
});

it("never lets sessions together reserve and spend more than the month has, in whatever order things happen", async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("add" as const) }),
    fc.record({ do: fc.constant("claim" as const) }),
    fc.record({ do: fc.constant("spend" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ do: fc.constant("finish" as const) }),
    fc.record({ do: fc.constant("wake" as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const id = await addOrganization(database);
      await updateOrganization(database, id, { sessionBudgetUsd: 3, monthlyBudgetUsd: 7 });
      const held: NonNullable<Awaited<ReturnType<typeof claim>>>[] = [];
      for (const next of steps) {
        if (next.do === "add") await addSession(database, id);
        if (next.do === "wake") await wakeWaiting(database, id);
        if (next.do === "claim") {
          const claimed = await claim(database);
          if (claimed !== null) held.push(claimed);
        }
        const [first] = held;
        if (next.do === "spend" && first !== undefined) {
          const { session, month } = await budgetLeft(database, first.sessionId);
          await spend(database, first, Math.max(0, Math.min(session ?? 0, month ?? 0)) * next.share);
        }
        if (next.do === "finish" && first !== undefined) {
          await finishSession(database, first, done);
          held.shift();
        }
        const { rows } = await database.pool.query<{ total: number }>(
          `select (coalesce((select sum(reserved_usd) from session where organization_id = $1 and status = 'running'), 0)
             + coalesce((select sum(spent_usd) from model_spend where organization_id = $1), 0))::float8 as total`,
          [id],
        );
        if ((rows[0]?.total ?? 0) > 7.00001) return false;
      }
      await database.pool.query("update session set status = 'cancelled' where organization_id = $1", [id]);
      return true;
    }),
    { numRuns: 30 },
  );
});
