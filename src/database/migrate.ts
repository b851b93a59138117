import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { ConflictError } from "../domain/errors/errors.ts";
import { applyDefinitions } from "./definitions.ts";
import { closeOlderConnections, firstWithNamedColumns, markAsWaiting, unmarkAsWaiting } from "./older-connections.ts";
import { inYieldingTransaction } from "./yielding-transaction.ts";

/** Advisory lock: only one node migrates at a time, and none during a restore. */
export const migrationLock = 4_747_002;

/**
 * Tables that record what has been done to the schema. A dump leaves them out: a restore writes them as it does the same.
 */
export const recordTables: readonly string[] = ["migration", "sql_definition"];

/** A change of the schema, identified by the number and name of its file. */
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
 * Migrates the schema: runs the numbered files of `directory` in order, each once and in its own transaction (on a database that has
 * none yet all in one), then applies the current definitions of the SQL functions. A file that says `outside a transaction` runs statement by
 * statement, so that it can build an index while others write. If a newer Offstage has migrated the database, this one can use
 * it if the newer migrations say so (`works-from`), so that old and new nodes can run at the same time during an upgrade; the
 * connections of nodes whose prepared statements the change would break are closed.
 * @param definitions folder of the SQL functions; null: they stay as they are, for a schema that is older than this folder
 * @throws ConflictError if a newer migration does not allow it
 */
export async function migrate(pool: pg.Pool, directory: string, definitions: string | null = null): Promise<void> {
  const known = await knownMigrations(directory);
  const client = await pool.connect();
  try {
    await takeMigrationLock(client);
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
    const newestDone = Math.max(0, ...done);
    const isOfOldNodes = newestDone > 0 && newestDone < firstWithNamedColumns;
    try {
      if (done.size === 0) await applyToNew(client, directory, known);
      else
        for (const migration of known) if (!done.has(migration.number)) await applyAlone(client, directory, migration);
      if (definitions !== null) await applyDefinitions(client, definitions);
    } catch (error) {
      // What was applied before the failure stays, and the old nodes work on with it.
      if (isOfOldNodes) await closeOlderConnections(client).catch(() => undefined);
      throw error;
    }
    if (isOfOldNodes) await closeOlderConnections(client);
  } finally {
    await client.query("select pg_advisory_unlock($1)", [migrationLock]).catch(() => undefined);
    client.release();
  }
}

/** Interval, in ms, at which a node asks again while another node migrates. */
const lockPollMs = 100;

/**
 * Takes the migration lock, asking again and again. A node that waited inside one statement would have a snapshot meanwhile,
 * for which `create index concurrently` of the node that migrates waits: a deadlock. Only one that waits is marked, in the same round trip:
 * most starts find the lock free.
 * @param shared whether others may have it at the same time who do not migrate either
 */
export async function takeMigrationLock(client: pg.ClientBase, shared = false): Promise<void> {
  const take = `pg_try_advisory_lock${shared ? "_shared" : ""}($1)`;
  for (let waits = false; ; waits = true) {
    const { rows } = await client.query<{ taken: boolean }>(
      `select case when ${take} then true else ${markAsWaiting} end as taken`,
      [migrationLock],
    );
    if (rows[0]?.taken === true) {
      if (waits) await unmarkAsWaiting(client);
      return;
    }
    await pause(lockPollMs);
  }
}

/** Creates the table that records which migrations were run. */
export async function createMigrationTable(client: pg.ClientBase): Promise<void> {
  await client.query(
    "create table if not exists migration (number integer primary key, name text not null, ran_at timestamptz not null default now())",
  );
  // Number of the last migration that a program must know to use the database after this one; null: it must know this
  // one.
  await client.query("alter table migration add column if not exists works_from integer");
}

/** Reads a file's first line, for example `-- works-from: 0015`. */
function worksFromIn(sql: string): number | null {
  const worksFrom = /^-- works-from: (\d{4})\n/u.exec(sql)?.[1];
  return worksFrom === undefined ? null : Number(worksFrom);
}

/** The second line of a file whose statements can't run in a transaction; each must be repeatable. */
const outsideLine = /^-- works-from: \d{4}\n-- outside a transaction\n/u;

/**
 * Runs one migration in the caller's transaction, in which indexes are not built concurrently.
 * @throws Error with the migration's name
 */
export async function applyMigration(client: pg.ClientBase, directory: string, migration: Migration): Promise<void> {
  await applyText(client, migration, await textOf(directory, migration));
}

const textOf = (directory: string, { name }: Migration): Promise<string> => readFile(join(directory, name), "utf8");

function applyText(client: pg.ClientBase, migration: Migration, sql: string): Promise<void> {
  return record(client, migration, sql, [withinTransaction(sql)]);
}

/**
 * Runs all migrations on a database that has none, as one message in one transaction: its tables are not in use yet,
 * and separate commits and round trips would take time.
 * @throws Error with the name of the migration that failed
 */
async function applyToNew(client: pg.PoolClient, directory: string, migrations: readonly Migration[]): Promise<void> {
  const texts = await Promise.all(migrations.map((migration) => textOf(directory, migration)));
  const parts = migrations.map((migration, index) => {
    const sql = texts[index] ?? "";
    const row = [migration.number, client.escapeLiteral(migration.name), worksFromIn(sql) ?? "null"].join(", ");
    return `${withinTransaction(sql)}\n;insert into migration (number, name, works_from) values (${row});`;
  });
  try {
    await client.query(`begin;\n${parts.join("\n")}\ncommit;`);
  } catch {
    await client.query("rollback");
    // One by one, because PostgreSQL does not say which of them it was.
    for (const migration of migrations) await applyAlone(client, directory, migration);
  }
}

/** A migration's text for a transaction, in which indexes are not built concurrently. */
function withinTransaction(sql: string): string {
  return outsideLine.test(sql) ? sql.replaceAll(" concurrently ", " ") : sql;
}

async function applyAlone(client: pg.PoolClient, directory: string, migration: Migration): Promise<void> {
  const sql = await textOf(directory, migration);
  if (outsideLine.test(sql)) return record(client, migration, sql, statementsOf(sql));
  return inYieldingTransaction(client, () => applyText(client, migration, sql));
}

/** Runs a file's statements, and records it as done. */
async function record(
  client: pg.ClientBase,
  migration: Migration,
  sql: string,
  statements: readonly string[],
): Promise<void> {
  try {
    for (const statement of statements) await client.query(statement);
    await client.query("insert into migration (number, name, works_from) values ($1, $2, $3)", [
      migration.number,
      migration.name,
      worksFromIn(sql),
    ]);
  } catch (cause) {
    throw new Error(`migration ${migration.name} failed`, { cause });
  }
}

/** The statements of a file, each of which ends at the end of a line. */
function statementsOf(sql: string): string[] {
  return sql
    .replaceAll(/^--.*$/gmu, "")
    .split(/;$/mu)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}
