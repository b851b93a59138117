import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { ConflictError } from "../domain/errors.ts";

/** Two nodes that start at once must not both migrate, and none while a backup is read in. */
export const migrationLock = 4_747_002;

/** One change of the schema, by the number and name of its file. */
export interface Migration {
  readonly number: number;
  readonly name: string;
}

/** The migrations that this Offstage knows, in order. */
export async function knownMigrations(directory: string): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((name) => /^\d{4}_.*\.sql$/u.test(name)).sort();
  return files.map((name) => ({ number: Number(name.slice(0, 4)), name }));
}

/**
 * Brings the schema up to date: the numbered files of `directory`, in order, each once and in a transaction of its own.
 * A database that a newer Offstage has migrated is good for this one too where its migrations say so, so that old and new
 * nodes run side by side while a fleet is upgraded.
 * @throws ConflictError where one of them does not
 */
export async function migrate(pool: pg.Pool, directory: string): Promise<void> {
  const known = await knownMigrations(directory);
  const client = await pool.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [migrationLock]);
    await createMigrationTable(client);
    const { rows } = await client.query<{ number: number; works_from: number | null }>(
      "select number, works_from from migration",
    );
    const done = new Set(rows.map((row) => row.number));
    const newest = known.at(-1)?.number ?? 0;
    for (const { number, works_from: worksFrom } of rows) {
      if (number <= newest || (worksFrom !== null && worksFrom <= newest)) continue;
      throw new ConflictError(
        `the database has migration ${number}, which this Offstage does not know: run a newer one`,
      );
    }
    for (const migration of known) if (!done.has(migration.number)) await applyAlone(client, directory, migration);
  } finally {
    await client.query("select pg_advisory_unlock($1)", [migrationLock]).catch(() => undefined);
    client.release();
  }
}

/** Where each migration that was carried out is written down. */
export async function createMigrationTable(client: pg.ClientBase): Promise<void> {
  await client.query(
    "create table if not exists migration (number integer primary key, name text not null, ran_at timestamptz not null default now())",
  );
  // Number of the last migration that a program must know to work with this one done; null: of none but this.
  await client.query("alter table migration add column if not exists works_from integer");
}

/** Said by a file's first line: `-- works-from: 0015`. */
function worksFromIn(sql: string): number | null {
  const said = /^-- works-from: (\d{4})\n/u.exec(sql)?.[1];
  return said === undefined ? null : Number(said);
}

/** Carries one migration out in the caller's transaction. @throws Error that names it */
export async function applyMigration(client: pg.ClientBase, directory: string, migration: Migration): Promise<void> {
  const sql = await readFile(join(directory, migration.name), "utf8");
  try {
    await client.query(sql);
    await client.query("insert into migration (number, name, works_from) values ($1, $2, $3)", [
      migration.number,
      migration.name,
      worksFromIn(sql),
    ]);
  } catch (cause) {
    throw new Error(`migration ${migration.name} failed`, { cause });
  }
}

async function applyAlone(client: pg.PoolClient, directory: string, migration: Migration): Promise<void> {
  await client.query("begin");
  try {
    await applyMigration(client, directory, migration);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}
