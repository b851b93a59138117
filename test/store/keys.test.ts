import { afterAll, beforeAll, expect, test } from "vitest";
import { createKey, createPrincipalFinder, revokeKey, type FindPrincipal } from "../../src/store/people/keys.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization } from "./fixtures.ts";

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
