import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { fleetQuestion, readFleetState } from "../../src/store/fleet.ts";
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
  expect(await readFleetState(database)).toEqual({
    sessions: { draft: 0, queued: 0, running: 0, waiting: 0 },
    jobs: { pending: 0, running: 0 },
    oldestWaitSeconds: { sessions: 0, jobs: 0 },
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
  const { sessions, oldestWaitSeconds } = await readFleetState(database);
  expect(sessions).toEqual({ draft: 1, queued: 2, running: 1, waiting: 0 });
  expect(Math.floor(oldestWaitSeconds.sessions / 60)).toBe(60);
});

test("looks at no row of what is over, however much there is", async () => {
  await database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, queued_at)
     select gen_random_uuid(), $1, 'Over', 'Over', 'completed', 'over', now() from generate_series(1, 20000)`,
    [organizationId],
  );
  await database.pool.query("vacuum analyze session");
  await database.pool.query("vacuum analyze job");
  const { rows } = await database.pool.query<Record<"QUERY PLAN", readonly { Plan: PlanNode }[]>>(
    `explain (analyze, format json) ${fleetQuestion}`,
  );
  const plan = rows[0]?.["QUERY PLAN"][0]?.Plan;
  const ofSessions = nodesOf(plan).filter((node) => node["Relation Name"] === "session");
  // One for each count, and one for the longest wait.
  expect(ofSessions).toHaveLength(5);
  for (const node of ofSessions) {
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
