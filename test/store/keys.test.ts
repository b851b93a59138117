import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { openDatabase, type Database } from "../../src/database/database.ts";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { createPrincipalFinder, type FindPrincipal } from "../../src/store/people/principals.ts";
import { updateUser } from "../../src/store/people/users.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addPerson } from "./fixtures.ts";

let testDatabase: TestDatabase;
let organizationId: string;
let find: FindPrincipal;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  organizationId = await addOrganization(testDatabase.database);
  find = createPrincipalFinder(testDatabase.database);
});
afterAll(() => testDatabase.close());

const made = (name: string) => createKey(testDatabase.database, organizationId, { name, scopes: ["read"] });

test("everybody who asks at once hears of their own key, and of none that there is not", async () => {
  const keys = await Promise.all(Array.from({ length: 30 }, (_, index) => made(`key ${index}`)));
  const asked = keys.flatMap(({ key, record }) => [
    { key, id: record.id },
    { key: `${key}x`, id: undefined },
    { key, id: record.id },
  ]);
  const found = await Promise.all(asked.map(({ key }) => find(key)));
  expect(found.map((principal) => principal?.keyId)).toEqual(asked.map(({ id }) => id));
});

test("a key that was revoked is good for nothing from then on, however many ask meanwhile", async () => {
  const { key, record } = await made("to be revoked");
  const before = Array.from({ length: 10 }, () => find(key));
  await revokeKey(testDatabase.database, organizationId, record.id);
  expect(await Promise.all(Array.from({ length: 10 }, () => find(key)))).toEqual(Array(10).fill(null));
  await Promise.all(before);
});

test("the use of each key is on record", async () => {
  const keys = await Promise.all([made("used"), made("used too")]);
  await Promise.all(keys.map(({ key }) => find(key)));
  const { rows } = await testDatabase.database.pool.query<{ used: boolean }>(
    "select last_used_at is not null as used from api_key where id = any($1)",
    [keys.map(({ record }) => record.id)],
  );
  expect(rows).toEqual([{ used: true }, { used: true }]);
});

describe("what is known of a key", () => {
  const scopesOf = async (key: string, finder: FindPrincipal) => (await finder(key))?.scopes ?? null;
  /** Changes a key without a notification, as no operation does: an answer from the cache then shows the old key. */
  const changeSilently = (id: string) =>
    testDatabase.database.pool.query("update api_key set scopes = '{write}' where id = $1", [id]);

  /** A finder with a clock that stands still, which knows the key. */
  async function knowing(database: Database, key: string, clock = { ms: 0 }): Promise<FindPrincipal> {
    const finder = createPrincipalFinder(database, { now: () => clock.ms });
    await finder(key);
    await expect.poll(() => database.isListening()).toBe(true);
    // Listened to since the question before.
    await finder(key);
    await finder(key);
    return finder;
  }

  test("is not asked for again within ten seconds, and is after them", async () => {
    const { key, record } = await made("known");
    const clock = { ms: 0 };
    const finder = await knowing(testDatabase.database, key, clock);
    await changeSilently(record.id);
    clock.ms = 9_999;
    expect(await scopesOf(key, finder)).toEqual(["read"]);
    clock.ms = 10_000;
    expect(await scopesOf(key, finder)).toEqual(["write"]);
  });

  test("ends with the key", async () => {
    const soon = new Date(Date.now() + 5_000).toISOString();
    const input = { name: "short", scopes: ["read" as const], expiresAt: soon };
    const { key, record } = await createKey(testDatabase.database, organizationId, input);
    const clock = { ms: 0 };
    const finder = await knowing(testDatabase.database, key, clock);
    await testDatabase.database.pool.query("update api_key set expires_at = now() where id = $1", [record.id]);
    expect(await scopesOf(key, finder)).toEqual(["read"]);
    clock.ms = 5_000;
    expect(await scopesOf(key, finder)).toBeNull();
  });

  test("is forgotten at once by the process that revokes it, and soon by others", async () => {
    const other = await openDatabase({ url: testDatabase.url, directory: "", logger: createLogger("error") });
    try {
      const { key, record } = await made("known to two");
      const here = await knowing(testDatabase.database, key);
      const there = await knowing(other, key);
      await changeSilently(record.id);
      expect([await scopesOf(key, here), await scopesOf(key, there)]).toEqual([["read"], ["read"]]);
      await revokeKey(testDatabase.database, organizationId, record.id);
      expect(await scopesOf(key, here)).toBeNull();
      await expect.poll(() => scopesOf(key, there)).toBeNull();
    } finally {
      await other.close();
    }
  });

  test("is forgotten if its owner is disabled", async () => {
    const { userId, key } = await addPerson(testDatabase.database, organizationId, { name: "Ada" });
    const finder = await knowing(testDatabase.database, key);
    await updateUser(testDatabase.database, organizationId, userId, { disabled: true });
    expect(await scopesOf(key, finder)).toBeNull();
  });

  test("is dropped from the cache if the connection for notifications is lost", async () => {
    const { key, record } = await made("known without notifications");
    const finder = await knowing(testDatabase.database, key);
    await changeSilently(record.id);
    expect(await scopesOf(key, finder)).toEqual(["read"]);
    const { rowCount } = await testDatabase.database.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and (query like 'listen %' or query like '%pg_notify(channel%')",
    );
    expect(rowCount).toBe(1);
    await expect.poll(() => scopesOf(key, finder)).toEqual(["write"]);
  });
});
