import type pg from "pg";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { isConnectionError } from "../../src/database/connection-errors.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

let testDatabase: TestDatabase;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
});

afterEach(() => testDatabase.close());

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

test("a transaction whose connection the server ends fails as a lost connection, and the next works", async () => {
  const { database } = testDatabase;
  for (let time = 0; time < 20; time += 1) {
    const error = await errorOf(
      database.transaction(async (transaction) => {
        const { rows } = await transaction.query<{ pid: number }>("select pg_backend_pid() as pid");
        await database.pool.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
        // It is read, or written to, before or after the server's last words came: the driver says each differently.
        await transaction.query("select 1");
      }),
    );
    expect({ error: String(error), isLost: isConnectionError(error) }).toMatchObject({ isLost: true });
  }
  expect(await database.transaction(async (transaction) => (await transaction.query("select 1")).rowCount)).toBe(1);
});

test("a write into a connection that is gone counts as a lost one", async () => {
  const broken = Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" });
  const { database } = testDatabase;
  expect(isConnectionError(await errorOf(database.transaction(() => Promise.reject(broken))))).toBe(true);
  // Of a server that ends while it is being connected to.
  vi.spyOn(database.pool as { connect: () => Promise<pg.PoolClient> }, "connect").mockRejectedValueOnce(broken);
  expect(isConnectionError(await errorOf(database.transaction(() => Promise.resolve())))).toBe(true);
  // Of others it is no sign.
  expect(isConnectionError(broken)).toBe(false);
});

test("a connection to a server that takes reads alone is not used again", async () => {
  const { database } = testDatabase;
  const pidOf = async (): Promise<unknown> => (await database.pool.query("select pg_backend_pid() as pid")).rows[0];
  const before = await pidOf();
  expect(await pidOf()).toEqual(before);
  const error = await errorOf(
    database.transaction(async (transaction) => {
      await transaction.query("set transaction read only");
      await transaction.query("create table after_failover ()");
    }),
  );
  expect({ error: String(error), isLost: isConnectionError(error) }).toMatchObject({ isLost: true });
  expect(await pidOf()).not.toEqual(before);
});
