import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";

/** Two nodes that start at once must not both migrate. */
const migrationLock = 4_747_002;

/**
 * Brings the schema up to date: the numbered files of `directory`, in order, each once and in a transaction of its own.
 * @throws Error where the database was migrated by a newer Offstage
 */
export async function migrate(pool: pg.Pool, directory: string): Promise<void> {
  const files = (await readdir(directory)).filter((name) => /^\d{4}_.*\.sql$/u.test(name)).sort();
  const client = await pool.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [migrationLock]);
    await client.query(
      "create table if not exists migration (number integer primary key, name text not null, ran_at timestamptz not null default now())",
    );
    const { rows } = await client.query<{ number: number }>("select number from migration");
    const done = new Set(rows.map((row) => row.number));
    const known = new Set(files.map(numberOf));
    for (const number of done) {
      if (!known.has(number))
        throw new Error(`the database has migration ${number}, which this Offstage does not know: run a newer one`);
    }
    for (const file of files) if (!done.has(numberOf(file))) await apply(client, directory, file);
  } finally {
    await client.query("select pg_advisory_unlock($1)", [migrationLock]).catch(() => undefined);
    client.release();
  }
}

function numberOf(file: string): number {
  return Number(file.slice(0, 4));
}

async function apply(client: pg.PoolClient, directory: string, file: string): Promise<void> {
  const sql = await readFile(join(directory, file), "utf8");
  await client.query("begin");
  try {
    await client.query(sql);
    await client.query("insert into migration (number, name) values ($1, $2)", [numberOf(file), file]);
    await client.query("commit");
  } catch (cause) {
    await client.query("rollback");
    throw new Error(`migration ${file} failed`, { cause });
  }
}
