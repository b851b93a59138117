import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { fireTriggers, prepareFiring, type Fired, type Firing } from "../../src/store/automations/firings.ts";
import { findReceivingTrigger, type ReceivingTrigger } from "../../src/store/automations/triggers.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { createBatchedInserts } from "../../src/store/sessions/batched-inserts.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization } from "./fixtures.ts";

const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));
let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  organizationId = await addOrganization(database);
});
afterAll(() => testDatabase.close());

async function addTrigger(): Promise<ReceivingTrigger> {
  const automationId = await addAutomation(database, organizationId, `m-${randomUUID().slice(0, 13)}`);
  const id = randomUUID();
  await database.pool.query(
    `insert into trigger (id, organization_id, automation_id, type, position, settings)
     values ($1, $2, $3, 'webhook', 0, '{"verify": {"type": "none"}}')`,
    [id, organizationId, automationId],
  );
  return found(id);
}

async function found(id: string): Promise<ReceivingTrigger> {
  const trigger = await findReceivingTrigger(database, vault, id);
  if (trigger === null) throw new Error(`trigger ${id} is gone`);
  return trigger;
}

const always = { passes: true, key: null };

/** A delivery with these keys. */
function firing(
  { fireable, version }: ReceivingTrigger,
  keys: readonly string[],
  { id = randomUUID(), verdict = always }: { readonly id?: string; readonly verdict?: typeof always } = {},
): Firing {
  return prepareFiring(fireable, verdict, { id, keys, payload: { keys: [...keys] } }, version);
}

async function jobsOf({ fireable }: ReceivingTrigger): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    "select id from job where trigger_id = $1 order by payload::text",
    [fireable.id],
  );
  return rows.map(({ id }) => id);
}

async function arrivalsOf({ fireable }: ReceivingTrigger): Promise<object[]> {
  const { rows } = await database.pool.query<object>(
    `select outcome, reason, original_id as "originalId", payload from arrival where trigger_id = $1 order by outcome, created_at, id`,
    [fireable.id],
  );
  return rows;
}

describe("fireTriggers", () => {
  test("starts one run for a delivery that is twice in a list, and has the other in the ledger as a duplicate of it", async () => {
    const trigger = await addTrigger();
    const id = randomUUID();
    const fired = await fireTriggers(database, [
      firing(trigger, ["delivery:1"], { id }),
      firing(trigger, ["delivery:2"]),
      firing(trigger, ["delivery:1"]),
    ]);
    expect(fired.map((each) => each?.outcome)).toEqual(["accepted", "accepted", "duplicate"]);
    expect(fired[2]).toEqual({ outcome: "duplicate", ledgerId: id, reason: "it was delivered before" });
    expect(await jobsOf(trigger)).toHaveLength(2);
    expect(await arrivalsOf(trigger)).toEqual([
      { outcome: "duplicate", reason: "it was delivered before", originalId: id, payload: null },
    ]);
    const [again] = await fireTriggers(database, [firing(trigger, ["delivery:1"])]);
    expect(again).toMatchObject({ outcome: "duplicate", ledgerId: id });
  });

  test("takes what shares a key with a duplicate alone for new", async () => {
    const trigger = await addTrigger();
    const fired = await fireTriggers(
      database,
      [["a", "b"], ["b", "c"], ["c", "d"], ["d"]].map((keys) => firing(trigger, keys)),
    );
    expect(fired.map((each) => each?.outcome)).toEqual(["accepted", "duplicate", "accepted", "duplicate"]);
    expect(fired[3]?.ledgerId).toBe(fired[2]?.ledgerId);
    const { rows } = await database.pool.query<{ key: string; ledger_id: string }>(
      "select key, ledger_id from received_key where scope = $1 order by key",
      [trigger.fireable.id],
    );
    const [first, , third] = fired.map((each) => each?.ledgerId);
    expect(rows.map(({ key, ledger_id: id }) => [key, id])).toEqual([
      ["a", first],
      ["b", first],
      ["c", third],
      ["d", third],
    ]);
  });

  test("gives the same answer to a list that is written once more, of which what comes again stays a duplicate", async () => {
    const trigger = await addTrigger();
    const list = [firing(trigger, ["1"]), firing(trigger, ["2"], { verdict: { ...always, passes: false } })];
    const first = await fireTriggers(database, list);
    expect(first.map((each) => each?.outcome)).toEqual(["accepted", "filtered"]);
    expect(await fireTriggers(database, list)).toEqual(first);
    expect([await jobsOf(trigger), await arrivalsOf(trigger)].map(({ length }) => length)).toEqual([1, 1]);
    const [again] = await fireTriggers(database, [firing(trigger, ["1"])]);
    expect(again).toMatchObject({ outcome: "duplicate", ledgerId: first[0]?.ledgerId });
  });

  test("answers what came before as a duplicate of the first, and notes no key of it", async () => {
    const trigger = await addTrigger();
    const [first, second] = await fireTriggers(database, [firing(trigger, ["a", "b"]), firing(trigger, ["c"])]);
    const duplicate = { outcome: "duplicate", reason: "it was delivered before" };
    const list = [
      firing(trigger, ["b", "c", "d"]),
      firing(trigger, ["d"]),
      firing(trigger, ["c"], { verdict: { ...always, passes: false } }),
    ];
    const fired = await fireTriggers(database, list);
    expect(fired).toMatchObject([
      { ...duplicate, ledgerId: first?.ledgerId },
      { outcome: "accepted" },
      { outcome: "filtered", reason: "its condition does not hold" },
    ]);
    expect(await fireTriggers(database, list)).toEqual(fired);
    expect(await arrivalsOf(trigger)).toEqual([
      { ...duplicate, originalId: first?.ledgerId, payload: null },
      { outcome: "filtered", reason: "its condition does not hold", originalId: null, payload: { keys: ["c"] } },
    ]);
    const { rows } = await database.pool.query<{ key: string; id: string }>(
      "select key, ledger_id as id from received_key where scope = $1 order by key",
      [trigger.fireable.id],
    );
    const ids = [first, first, second, fired[1]].map((each) => each?.ledgerId);
    expect(rows).toEqual(["a", "b", "c", "d"].map((key, index) => ({ key, id: ids[index] })));
  });

  test("leaves no key of what its condition filters, and says why", async () => {
    const trigger = await addTrigger();
    const [filtered] = await fireTriggers(database, [
      firing(trigger, ["1"], { verdict: { ...always, passes: false } }),
    ]);
    expect(filtered).toMatchObject({ outcome: "filtered", reason: "its condition does not hold" });
    expect(await arrivalsOf(trigger)).toMatchObject([{ outcome: "filtered", payload: { keys: ["1"] } }]);
    const [fired] = await fireTriggers(database, [firing(trigger, ["1"])]);
    expect(fired?.outcome).toBe("accepted");
  });

  test.each([
    ["its trigger was changed", `update trigger set sealed = '\\x00', master_key = 'x' where id = $1`],
    ["its trigger was removed", "update trigger set deleted_at = now() where id = $1"],
    [
      "its automation was paused",
      "update automation set paused = true where id = (select automation_id from trigger where id = $1)",
    ],
    [
      "its automation was deleted",
      "update automation set deleted_at = now() where id = (select automation_id from trigger where id = $1)",
    ],
  ])("writes nothing of a delivery if %s after it was read, and all of the others", async (_, change) => {
    const [changed, other] = [await addTrigger(), await addTrigger()];
    await database.pool.query(change, [changed.fireable.id]);
    const fired = await fireTriggers(database, [firing(changed, ["1"]), firing(other, ["1"])]);
    expect(fired).toEqual([null, expect.objectContaining({ outcome: "accepted" })]);
    expect(await fireTriggers(database, [firing(changed, ["1"])])).toEqual([null]);
    expect([await jobsOf(changed), await arrivalsOf(changed)]).toEqual([[], []]);
    expect(await jobsOf(other)).toHaveLength(1);
    const { rows } = await database.pool.query("select from received_key where scope = $1", [changed.fireable.id]);
    expect(rows).toEqual([]);
  });

  test("tells webhooks of each run that it starts", async () => {
    const id = randomUUID();
    await database.pool.query(
      `insert into webhook (id, organization_id, url, events, enabled, sealed, master_key)
       values ($1, $2, 'https://example.com', '{}', true, '\\x00', 'x')`,
      [id, organizationId],
    );
    const trigger = await addTrigger();
    await fireTriggers(database, [firing(trigger, ["1"]), firing(trigger, ["2"]), firing(trigger, ["1"])]);
    await fireTriggers(database, [firing(trigger, ["3"])]);
    const { rows } = await database.pool.query<{ type: string; job: string }>(
      "select type, data ->> 'id' as job from webhook_delivery where webhook_id = $1",
      [id],
    );
    expect(rows.map(({ type }) => type)).toEqual(["job.pending", "job.pending", "job.pending"]);
    expect(rows.map(({ job }) => job).toSorted((a, b) => a.localeCompare(b))).toEqual(
      (await jobsOf(trigger)).toSorted((a, b) => a.localeCompare(b)),
    );
    await database.pool.query("delete from webhook where id = $1", [id]);
  });
});

describe("deliveries at once", () => {
  test("of which one waits for another's commit leave no key of those that came second", async () => {
    const trigger = await addTrigger();
    const first = randomUUID();
    let second: Promise<(Fired | null)[]> | undefined;
    await database.transaction(async (transaction) => {
      await transaction.query(
        "insert into received_key (organization_id, scope, key, ledger_id) values ($1, $2, 'b', $3)",
        [organizationId, trigger.fireable.id, first],
      );
      second = fireTriggers(database, [firing(trigger, ["a", "b", "c"])]);
      await vi.waitUntil(async () => {
        const { rows } = await database.pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return rows.length > 0;
      });
    });
    expect(await second).toMatchObject([{ outcome: "duplicate", ledgerId: first }]);
    const { rows } = await database.pool.query<{ key: string }>("select key from received_key where scope = $1", [
      trigger.fireable.id,
    ]);
    expect(rows).toEqual([{ key: "b" }]);
    expect(await jobsOf(trigger)).toEqual([]);
  });

  test("are committed together, and each has its own outcome", async () => {
    const trigger = await addTrigger();
    const inserts = createBatchedInserts(database);
    const fired = await Promise.all(Array.from({ length: 40 }, (_, n) => inserts.fire(firing(trigger, [`${n % 20}`]))));
    expect(fired.filter((each) => each?.outcome === "accepted")).toHaveLength(20);
    expect(fired.filter((each) => each?.outcome === "duplicate")).toHaveLength(20);
    expect(await jobsOf(trigger)).toHaveLength(20);
    const { rows } = await database.pool.query("select distinct xmin::text from job where trigger_id = $1", [
      trigger.fireable.id,
    ]);
    expect(rows.length).toBeLessThan(5);
  });

  test("of which the database refuses one fail with that one alone", async () => {
    const trigger = await addTrigger();
    const inserts = createBatchedInserts(database);
    const nowhere = { ...trigger, fireable: { ...trigger.fireable, automationId: randomUUID() } };
    const settled = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => inserts.fire(firing(n === 7 ? nowhere : trigger, [`${n}`]))),
    );
    expect(settled.flatMap(({ status }, n) => (status === "rejected" ? [n] : []))).toEqual([7]);
    expect(await jobsOf(trigger)).toHaveLength(19);
    // Nor did it leave a key: its sender tries again.
    expect(await inserts.fire(firing(trigger, ["7"]))).toMatchObject({ outcome: "accepted" });
  });

  test("that two nodes get in opposite orders start one run each", async () => {
    const trigger = await addTrigger();
    const nodes = [createBatchedInserts(database), createBatchedInserts(database)];
    const keys = Array.from({ length: 100 }, (_, n) => `delivery:${n}`);
    const fired = await Promise.all(
      nodes.flatMap((node, which) =>
        (which === 0 ? keys : keys.toReversed()).map((key) => node.fire(firing(trigger, [key]))),
      ),
    );
    expect(fired.filter((each) => each?.outcome === "accepted")).toHaveLength(100);
    expect(await jobsOf(trigger)).toHaveLength(100);
    expect(await arrivalsOf(trigger)).toHaveLength(100);
  });

  test("of a trigger with a policy keep to it, and wait for no other", async () => {
    const trigger = await addTrigger();
    await database.pool.query(`update trigger set max_per_hour = 3 where id = $1`, [trigger.fireable.id]);
    const limited = await found(trigger.fireable.id);
    const inserts = createBatchedInserts(database);
    const fired = await Promise.all(Array.from({ length: 10 }, (_, n) => inserts.fire(firing(limited, [`${n}`]))));
    expect(fired.filter((each) => each?.outcome === "accepted")).toHaveLength(3);
    expect(fired.filter((each) => each?.outcome === "filtered")).toHaveLength(7);
  });
});
