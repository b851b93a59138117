import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { InvalidInputError, NotFoundError } from "../../domain/errors/errors.ts";
import { migrationLock, recordTables, takeMigrationLock, type Migration } from "../migrate.ts";

/** The header before the data of a dump. */
export interface DumpHeader {
  /** Version of the Offstage that made the dump. */
  readonly offstage: string;
  readonly takenAt: string;
  /** Migrations of the schema that the dump was made from. */
  readonly migrations: readonly Migration[];
}

/** Number of tables and rows in a dump. */
export interface DumpTotals {
  readonly tables: number;
  readonly rows: number;
}

/**
 * A part of a dump. A dump of the whole database is a stream: a header, each table followed by its rows, the
 * sequences, and the totals. A backup writes them to a file; a move passes them on directly.
 */
export type DumpPart =
  | ({ readonly kind: "header" } & DumpHeader)
  | { readonly kind: "table"; readonly name: string; readonly columns: readonly string[] }
  /** Rows of the last table, in the text format of PostgreSQL's COPY. A part may end in the middle of a row. */
  | { readonly kind: "rows"; readonly bytes: Buffer }
  | { readonly kind: "sequence"; readonly name: string; readonly value: string; readonly isCalled: boolean }
  | ({ readonly kind: "end" } & DumpTotals);

/** Settings for the transaction, so that values have the same text whatever the server's configuration is. */
export const plainSettings = `set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres';
  set local extra_float_digits = 1; set local bytea_output = 'hex'; set local client_encoding = 'UTF8';
  set local statement_timeout = 0; set local lock_timeout = 0; set local idle_in_transaction_session_timeout = 0`;

/**
 * SQL query for the schema's relations, without those of extensions.
 * @param kinds quoted values of `pg_class.relkind`
 */
export const ownRelations = (kinds: string): string => `
  select relation.oid, relation.relname as name from pg_class relation
  where relation.relnamespace = current_schema()::regnamespace and relation.relkind in (${kinds})
    and not exists (select 1 from pg_depend where objid = relation.oid and deptype = 'e')
  order by relation.relname`;

/**
 * Reads a consistent snapshot of a database that others may write to.
 * @param options.version of this Offstage
 * @throws NotFoundError if it is not a database of Offstage
 */
export async function* dumpDatabase(
  pool: pg.Pool,
  options: { readonly version: string },
): AsyncGenerator<DumpPart, void, void> {
  const client = await pool.connect();
  try {
    const tables = await beginSnapshot(client);
    const { rows: migrations } = await client.query<Migration>("select number, name from migration order by number");
    yield { kind: "header", offstage: options.version, takenAt: new Date().toISOString(), migrations };
    let rows = 0;
    for (const { name, columns } of tables) {
      yield { kind: "table", name, columns };
      const list = columns.map((column) => pg.escapeIdentifier(column)).join(", ");
      const copy = client.query(copyTo(`copy ${pg.escapeIdentifier(name)} (${list}) to stdout`));
      for await (const bytes of copy) yield { kind: "rows", bytes: bytes as Buffer };
      rows += copy.rowCount;
    }
    yield* sequencesOf(client);
    await client.query("commit");
    yield { kind: "end", tables: tables.length, rows };
  } finally {
    // The connection is closed, because a reader that stops early leaves it in the middle of a COPY.
    client.release(true);
  }
}

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/**
 * Begins a transaction with a snapshot. The migration lock prevents a migration between the list of tables and their
 * locks.
 */
async function beginSnapshot(client: pg.PoolClient): Promise<Table[]> {
  const { rows } = await client.query<{ there: boolean }>("select to_regclass('migration') is not null as there");
  if (rows[0]?.there !== true) {
    throw new NotFoundError("there is nothing to back up: no Offstage has run on this database");
  }
  await takeMigrationLock(client, true);
  await client.query("begin isolation level repeatable read read only");
  await client.query(plainSettings);
  const found = await client.query<Table>(
    `select own.name, array(select attname::text from pg_attribute
       where attrelid = own.oid and attnum > 0 and not attisdropped and attgenerated = '' order by attnum) as columns
     from (${ownRelations("'r'")}) as own where own.name <> all($1) order by own.name`,
    [recordTables],
  );
  const names = found.rows.map(({ name }) => pg.escapeIdentifier(name));
  if (names.length === 0) throw new InvalidInputError("the database has no Offstage tables");
  // Reads and writes continue; only a change of the schema waits.
  await client.query(`lock table ${names.join(", ")} in access share mode`);
  await client.query("select pg_advisory_unlock_shared($1)", [migrationLock]);
  return found.rows;
}

async function* sequencesOf(client: pg.PoolClient): AsyncGenerator<DumpPart, void, void> {
  const { rows } = await client.query<{ name: string }>(ownRelations("'S'"));
  for (const { name } of rows) {
    // Sequences are not part of the snapshot: a value that was taken since only leaves a gap.
    const read = await client.query<{ value: string; isCalled: boolean }>(
      `select last_value::text as value, is_called as "isCalled" from ${pg.escapeIdentifier(name)}`,
    );
    const [state] = read.rows;
    if (state !== undefined) yield { kind: "sequence", name, ...state };
  }
}
