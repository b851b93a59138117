import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { ConnectionCheck } from "../../src/domain/repositories/connection.ts";
import { checkConnection } from "../../src/forges/connections/check-connection.ts";
import { createGuardedFetch } from "../../src/gateway/egress/guarded-fetch.ts";
import { createLogger } from "../../src/observability.ts";
import { readQueueStats } from "../../src/store/queue/stats.ts";
import { createConnection, getConnection } from "../../src/store/secrets/forge-connections.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { checkDueConnections } from "../../src/worker/background/connection-checks.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { addOrganization } from "../store/fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let forge: TestForge;
let organizationId: string;
const vault = createVault(environmentKeyring(randomBytes(32).toString("base64")));
const reach = createGuardedFetch({ privateHosts: ["127.0.0.1"], setting: "OFFSTAGE_FORGE_HOSTS" });

beforeAll(async () => {
  forge = await startForge();
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});
beforeEach(async () => {
  organizationId = await addOrganization(database);
  await database.pool.query("delete from forge_connection");
  forge.setScopes("repo, workflow");
});
afterAll(async () => {
  await testDatabase?.close();
  await forge?.close();
});

async function connect(): Promise<string> {
  const id = crypto.randomUUID();
  const at = { kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl } as const;
  const credential = { type: "token", token: forge.token } as const;
  const check = { account: "tester", problems: [] };
  await createConnection(database, vault, organizationId, { ...at, id, name: "ours", credential, check });
  return id;
}
const stateOf = async (id: string) => (await getConnection(database.pool, organizationId, id)).health.state;
const nextInMinutes = async (id: string): Promise<number> => {
  const { rows } = await database.pool.query<{ minutes: number }>(
    "select (extract(epoch from next_check_at - now()) / 60)::float8 as minutes from forge_connection where id = $1",
    [id],
  );
  return rows[0]?.minutes ?? 0;
};
function round(
  check: (connection: Parameters<typeof checkConnection>[0] & { credential: never }) => Promise<ConnectionCheck> = (
    connection,
  ) =>
    checkConnection(connection, connection.credential, { reach, configured: [], signal: AbortSignal.timeout(20_000) }),
): Promise<number> {
  const options = { database, vault, logger: createLogger("silent"), check: check as never };
  return checkDueConnections(options, new AbortController().signal);
}
const makeDue = () => database.pool.query("update forge_connection set next_check_at = now()");

it("keeps the health of each connection current, hourly, and sooner while it is broken", async () => {
  const id = await connect();
  expect(await round()).toBe(0);
  expect(await nextInMinutes(id)).toBeGreaterThan(49);
  forge.setScopes("workflow");
  await makeDue();
  expect(await round()).toBe(1);
  expect(await stateOf(id)).toBe("broken");
  expect(await nextInMinutes(id)).toBeLessThan(11);
  expect((await readQueueStats(database)).connections).toEqual({ ok: 0, degraded: 0, broken: 1 });
  expect(await round()).toBe(0);
  forge.setScopes("repo");
  await makeDue();
  await round();
  expect(await stateOf(id)).toBe("degraded");
  expect(await nextInMinutes(id)).toBeGreaterThan(49);
  expect((await readQueueStats(database)).connections).toEqual({ ok: 0, degraded: 1, broken: 0 });
});

it("says of a forge that is away that the connection is broken, and of one that is back that it works", async () => {
  const id = await connect();
  await database.pool.query("update forge_connection set api_url = 'http://127.0.0.1:1', next_check_at = now()");
  await round();
  const { health } = await getConnection(database.pool, organizationId, id);
  expect(health).toMatchObject({ state: "broken", problems: [{ missing: "an answer of the forge" }] });
  await database.pool.query("update forge_connection set api_url = $1, next_check_at = now()", [forge.apiUrl]);
  await round();
  expect(await stateOf(id)).toBe("ok");
});

it("lets a check that fails in itself hinder no other, and comes back to it", async () => {
  const id = await connect();
  await makeDue();
  expect(await round(() => Promise.reject(new Error("a fault")))).toBe(1);
  expect(await stateOf(id)).toBe("ok");
  expect(await nextInMinutes(id)).toBeLessThan(6);
});
