import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { Account } from "../../src/domain/people/account.ts";
import { checkAccount } from "../../src/forges/connections/check-account.ts";
import { createGuardedFetch } from "../../src/gateway/egress/guarded-fetch.ts";
import { createLogger } from "../../src/observability.ts";
import { createAccount, getAccount, type AccountOwner } from "../../src/store/secrets/accounts.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { noteAccountRefusal, openAccount } from "../../src/store/secrets/opened-accounts.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { checkDueAccounts, type AccountCheckOptions } from "../../src/worker/background/account-checks.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import type { Person } from "../forge/state.ts";
import { addOrganization, addPerson } from "../store/fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let forge: TestForge;
let ada: Person;
let owner: AccountOwner;
/** Where the forge is known to have its API; null: it is known no more. */
let apiUrl: string | null;
/** Where checks were sent to. */
let asked: string[];
const vault = createVault(environmentKeyring(randomBytes(32).toString("base64")));
const reach = createGuardedFetch({ privateHosts: ["127.0.0.1"], setting: "OFFSTAGE_FORGE_HOSTS" });

beforeAll(async () => {
  forge = await startForge();
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});
beforeEach(async () => {
  const organizationId = await addOrganization(database);
  owner = { organizationId, userId: (await addPerson(database, organizationId, { name: "Ada" })).userId };
  await database.pool.query("delete from forge_account");
  forge.setScopes("repo");
  ada = forge.addPerson(`ada-${owner.userId.slice(0, 8)}`);
  ({ apiUrl } = forge);
  asked = [];
});
afterAll(async () => {
  await testDatabase?.close();
  await forge?.close();
});

async function connect(): Promise<string> {
  const at = { kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl } as const;
  const check = { account: ada.login, problems: [] };
  const account = { ...at, id: crypto.randomUUID(), name: ada.login, token: ada.token, username: null, check };
  return (await createAccount(database, vault, owner, account)).id;
}
const healthOf = async (id: string): Promise<Account["health"]> => (await getAccount(database, owner, id)).health;
const minutesUntilNext = async (id: string): Promise<number> => {
  const { rows } = await database.pool.query<{ minutes: number }>(
    "select (extract(epoch from next_check_at - now()) / 60)::float8 as minutes from forge_account where id = $1",
    [id],
  );
  return rows[0]?.minutes ?? 0;
};
const makeDue = () => database.pool.query("update forge_account set next_check_at = now()");
async function round(over: Partial<AccountCheckOptions["accounts"]> = {}): Promise<number> {
  const accounts: AccountCheckOptions["accounts"] = {
    placeOf: (_, webUrl) => Promise.resolve(apiUrl === null ? "no forge" : { kind: "github", webUrl, apiUrl }),
    check: (place, credential, signal) => {
      asked.push(place.apiUrl);
      return checkAccount(place, credential, { reach, signal });
    },
    ...over,
  };
  const options = { database, vault, logger: createLogger("silent"), accounts };
  return checkDueAccounts(options, new AbortController().signal);
}

it("finds a token that was revoked, and one that is good again, within the hour", async () => {
  const id = await connect();
  expect([await round(), asked]).toEqual([0, []]);
  expect(await minutesUntilNext(id)).toBeGreaterThan(49);
  const { token } = ada;
  forge.removePerson(ada);
  await makeDue();
  expect([await round(), asked]).toEqual([1, [forge.apiUrl]]);
  expect(await healthOf(id)).toMatchObject({ state: "broken", problems: [{ missing: "a valid token" }] });
  expect(await minutesUntilNext(id)).toBeGreaterThan(49);
  expect(await round()).toBe(0);
  forge.addPerson(ada.login, token);
  await makeDue();
  await round();
  expect(await healthOf(id)).toMatchObject({ state: "ok", problems: [] });
});

it("leaves an account as it is while its forge is away, and asks again in ten minutes", async () => {
  const id = await connect();
  const { checkedAt } = await healthOf(id);
  await database.pool.query("update forge_account set api_url = 'http://127.0.0.1:1', next_check_at = now()");
  apiUrl = "http://127.0.0.1:1";
  expect([await round(), asked]).toEqual([1, [apiUrl]]);
  expect(await healthOf(id)).toEqual({ state: "ok", problems: [], checkedAt });
  expect(await minutesUntilNext(id)).toBeLessThan(11);
});

it("sends a token nowhere else than where it was checked", async () => {
  const id = await connect();
  for (const now of [null, "https://elsewhere.example/api/v3"]) {
    apiUrl = now;
    await makeDue();
    expect([await round(), asked]).toEqual([1, []]);
  }
  expect((await healthOf(id)).state).toBe("ok");
  ({ apiUrl } = forge);
  await makeDue();
  expect([await round(), asked]).toEqual([1, [forge.apiUrl]]);
});

it("does not try an account again where it was refused", async () => {
  const id = await connect();
  const repositoryId = crypto.randomUUID();
  await database.pool.query(
    "insert into repository (id, organization_id, url, name, address_key) values ($1, $2, 'https://forge.example/a/b', 'a/b', 'a/b')",
    [repositoryId, owner.organizationId],
  );
  await noteAccountRefusal(database, await openAccount(database, vault, owner, id), { words: "No", repositoryId });
  await makeDue();
  await round();
  expect(await healthOf(id)).toMatchObject({ state: "degraded", problems: [{ missing: "pull requests on a/b" }] });
});

it("does not send the token of a disabled person", async () => {
  await connect();
  await makeDue();
  await database.pool.query("update user_account set disabled_at = now() where id = $1", [owner.userId]);
  expect([await round(), asked]).toEqual([0, []]);
  await database.pool.query("update user_account set disabled_at = null where id = $1", [owner.userId]);
  expect([await round(), asked]).toEqual([1, [forge.apiUrl]]);
});

it("drops what it found of a token that was replaced meanwhile", async () => {
  const id = await connect();
  await makeDue();
  const check = async () => {
    await database.pool.query("update forge_account set sealed = sealed || '\\x00'");
    return { account: null, problems: [{ missing: "a valid token", why: "", remedy: "", essential: true }] };
  };
  expect(await round({ check })).toBe(1);
  expect((await healthOf(id)).state).toBe("ok");
});

it("lets a check that fails in itself hinder no other, and comes back to it", async () => {
  const id = await connect();
  await makeDue();
  expect(await round({ check: () => Promise.reject(new Error("a fault")) })).toBe(1);
  expect((await healthOf(id)).state).toBe("ok");
  expect(await minutesUntilNext(id)).toBeLessThan(11);
});
