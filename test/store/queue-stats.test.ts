import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { queueStatsQuery, readQueueStats } from "../../src/store/queue/stats.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, requireClaim } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  organizationId = await addOrganization(database);
});

afterAll(() => testDatabase.close());

test("where there is nothing, nothing waits", async () => {
  expect(await readQueueStats(database)).toEqual({
    sessions: { draft: 0, queued: 0, running: 0, waiting: 0 },
    jobs: { pending: 0, running: 0 },
    deliveries: { due: 0, later: 0 },
    connections: { ok: 0, degraded: 0, broken: 0 },
    automations: { pausedByFailures: 0, silent: 0 },
    oldestWaitSeconds: { sessions: 0, jobs: 0, deliveries: 0 },
    workers: 0,
  });
});

test("counts what is not over, and finds what waits for the longest time whatever its priority", async () => {
  await addSession(database, organizationId, { queueRightAway: false });
  await addSession(database, organizationId, { priority: 1 });
  await requireClaim(database);
  await addSession(database, organizationId, { priority: 1 });
  const { id } = await addSession(database, organizationId, { priority: 9 });
  await database.pool.query("update session set queued_at = now() - interval '1 hour' where id = $1", [id]);
  const { sessions, oldestWaitSeconds } = await readQueueStats(database);
  expect(sessions).toEqual({ draft: 1, queued: 2, running: 1, waiting: 0 });
  expect(Math.floor(oldestWaitSeconds.sessions / 60)).toBe(60);
});

/** A webhook with as many deliveries as are given, each due so many minutes ago. */
async function addDeliveries(enabled: boolean, status: string, minutesAgo: readonly number[]): Promise<void> {
  await database.pool.query(
    `with made as (
       insert into webhook (id, organization_id, url, events, enabled, sealed, master_key)
       values (gen_random_uuid(), $1, 'https://example.com/', '{}', $2, '', '') returning id)
     insert into webhook_delivery (id, organization_id, webhook_id, type, data, status, next_attempt_at)
     select gen_random_uuid(), $1, made.id, 'webhook.test', '{}', $3, now() - minutes * interval '1 minute'
     from made, unnest($4::float8[]) as minutes`,
    [organizationId, enabled, status, minutesAgo],
  );
}

test("counts deliveries that are due and those that are later, and no wait where a webhook is switched off", async () => {
  await addDeliveries(false, "pending", [600]);
  await addDeliveries(true, "dead", [300]);
  await addDeliveries(true, "pending", [-5]);
  expect(await readQueueStats(database)).toMatchObject({
    deliveries: { due: 0, later: 1 },
    oldestWaitSeconds: { deliveries: 0 },
  });
  await addDeliveries(true, "pending", [1, 120, -1]);
  const { deliveries, oldestWaitSeconds } = await readQueueStats(database);
  expect(deliveries).toEqual({ due: 2, later: 2 });
  expect(Math.floor(oldestWaitSeconds.deliveries / 60)).toBe(120);
});

test("looks at no row of what is over, however much there is", async () => {
  await database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, queued_at)
     select gen_random_uuid(), $1, 'Over', 'Over', 'completed', 'over', now() from generate_series(1, 20000)`,
    [organizationId],
  );
  await addDeliveries(
    true,
    "delivered",
    Array.from({ length: 20_000 }, (_, minutes) => minutes),
  );
  await database.pool.query("vacuum analyze session");
  await database.pool.query("vacuum analyze webhook_delivery");
  await database.pool.query("vacuum analyze job");
  const { rows } = await database.pool.query<Record<"QUERY PLAN", readonly { Plan: PlanNode }[]>>(
    `explain (analyze, format json) ${queueStatsQuery}`,
  );
  const plan = rows[0]?.["QUERY PLAN"][0]?.Plan;
  const reads = (table: string): PlanNode[] => nodesOf(plan).filter((node) => node["Relation Name"] === table);
  // One for each count, and one for the longest wait.
  expect(reads("session")).toHaveLength(5);
  expect(reads("webhook_delivery")).toHaveLength(3);
  for (const node of [...reads("session"), ...reads("webhook_delivery")]) {
    expect(node["Node Type"]).toMatch(/^(?:Index|Bitmap)/u);
    expect(node["Rows Removed by Filter"] ?? 0).toBe(0);
  }
});

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly PlanNode[];
}

function nodesOf(node: PlanNode | undefined): PlanNode[] {
  return node === undefined ? [] : [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}
