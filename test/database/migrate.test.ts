import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate } from "../../src/database/migrate.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

const migrations = join(import.meta.dirname, "../../src/store/migrations");
let testDatabase: TestDatabase;
let pool: pg.Pool;
let folder: string;

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  pool = new pg.Pool({ connectionString: testDatabase.url });
  // Dropping the database ends what is still idle on it.
  pool.on("error", () => undefined);
  folder = await mkdtemp(join(tmpdir(), "offstage-migrations-"));
  await cp(migrations, folder, { recursive: true });
});

afterEach(async () => {
  await pool.end();
  await testDatabase.close();
  await rm(folder, { recursive: true, force: true });
});

const addMigration = (number: string, sql: string): Promise<void> =>
  writeFile(join(folder, `${number}_newer.sql`), sql);

test("a program starts on a database that a newer one has migrated, if the migration says that it may", async () => {
  await addMigration("9001", "-- works-from: 0001\nalter table session add column newer text;\n");
  await addMigration("9002", "-- works-from: 0001\nalter table job add column newer text;\n");
  await migrate(pool, folder);
  await expect(migrate(pool, migrations)).resolves.toBeUndefined();
});

test("a program does not start if a newer migration asks for more than it knows", async () => {
  await addMigration("9001", "-- works-from: 0001\nalter table session add column newer text;\n");
  await addMigration("9002", "-- works-from: 9001\nalter table session drop column newer;\n");
  await migrate(pool, folder);
  await expect(migrate(pool, migrations)).rejects.toThrow(
    "the database has migration 9002, which this Offstage does not know: run a newer one",
  );
});

test("a migration that says nothing is for programs that know it", async () => {
  await addMigration("9001", "alter table session add column newer text;\n");
  await migrate(pool, folder);
  await expect(migrate(pool, migrations)).rejects.toThrow(/has migration 9001/u);
});

test("of many nodes that start at once each migration is carried out by one", async () => {
  await addMigration("9001", "create table only_once (id integer);\n");
  await Promise.all(Array.from({ length: 8 }, () => migrate(pool, folder)));
  const { rows } = await pool.query("select number from migration where number = 9001");
  expect(rows).toHaveLength(1);
});

test("a migration that fails leaves nothing of itself, and is tried again by the next start", async () => {
  await addMigration("9001", "create table half_done (id integer); select 1 / 0;\n");
  await expect(migrate(pool, folder)).rejects.toThrow("migration 9001_newer.sql failed");
  const { rows } = await pool.query("select to_regclass('half_done') as found");
  expect(rows).toEqual([{ found: null }]);
  await addMigration("9001", "create table half_done (id integer);\n");
  await migrate(pool, folder);
});
