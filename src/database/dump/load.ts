import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { ConflictError, InvalidInputError } from "../../domain/errors/errors.ts";
import { applyMigration, createMigrationTable, knownMigrations, takeMigrationLock } from "../migrate.ts";
import { ownRelations, plainSettings, type DumpHeader, type DumpPart, type DumpTotals } from "./dump.ts";

/**
 * Restores a dump into an empty database: the schema of the dump, its rows, then this Offstage's later migrations.
 * All of it is one transaction.
 * @param migrations folder of this Offstage's migrations
 * @throws ConflictError if the database is not empty
 * @throws InvalidInputError if a newer Offstage made the dump, or it is damaged
 */
export async function loadDatabase(
  pool: pg.Pool,
  parts: AsyncGenerator<DumpPart, void, void>,
  migrations: string,
): Promise<DumpHeader & DumpTotals> {
  const client = await pool.connect();
  try {
    // A server that starts meanwhile waits for this lock, and then finds the restored data.
    await takeMigrationLock(client);
    await client.query("begin");
    await client.query(plainSettings);
    await requireEmpty(client);
    const loaded = await load(client, parts, migrations);
    await client.query("commit");
    return loaded;
  } finally {
    // Closing the connection rolls back what was not committed and releases the lock.
    client.release(true);
    // This closes the source too, whatever failed here.
    await parts.return();
  }
}

async function requireEmpty(client: pg.PoolClient): Promise<void> {
  const { rowCount } = await client.query(ownRelations("'r', 'p', 'v', 'm', 'S', 'f'"));
  if (rowCount === 0) return;
  throw new ConflictError(
    "the database is not empty, and was not changed: choose a new database, or a data folder that no server has used",
  );
}

/** @throws InvalidInputError if a newer Offstage made the dump */
async function requireKnown(header: DumpHeader, directory: string): Promise<void> {
  const known = new Map((await knownMigrations(directory)).map(({ number, name }) => [number, name]));
  const unknown = header.migrations.find(({ number, name }) => known.get(number) !== name);
  if (unknown === undefined) return;
  throw new InvalidInputError(
    `the backup was taken by Offstage ${header.offstage} and needs its migration ${unknown.name}, which this one does not know: restore it with that version or a newer one`,
  );
}

async function load(
  client: pg.PoolClient,
  parts: AsyncGenerator<DumpPart, void, void>,
  directory: string,
): Promise<DumpHeader & DumpTotals> {
  const first = await parts.next();
  if (first.done === true || first.value.kind !== "header") {
    throw new InvalidInputError("the backup does not begin with its header");
  }
  const { offstage, takenAt, migrations } = first.value;
  await requireKnown(first.value, directory);
  await createMigrationTable(client);
  for (const migration of migrations) await applyMigration(client, directory, migration);
  const { tables, finish } = await prepareTables(client);
  const totals = await fill(client, parts, tables);
  // Reading past the end verifies the checksum of a file.
  if ((await parts.next()).done !== true) throw new InvalidInputError("the backup has data after its end");
  for (const statement of finish) await client.query(statement);
  const done = new Set(migrations.map(({ number }) => number));
  for (const migration of await knownMigrations(directory)) {
    if (!done.has(migration.number)) await applyMigration(client, directory, migration);
  }
  // The functions are those of the migrations. With an empty record, the server that starts applies its definitions; a dump
  // that a node of an older version took of this schema has the rows.
  await client.query("truncate sql_definition");
  return { offstage, takenAt, migrations, ...totals };
}

interface PreparedTables {
  readonly tables: ReadonlySet<string>;
  /** Statements that restore what was removed while the tables are filled. */
  readonly finish: readonly string[];
}

/**
 * Prepares the tables for the rows of a dump: removes rows that migrations inserted, and the foreign keys and
 * triggers, which would demand an order of tables. Adding the keys again checks every row.
 */
async function prepareTables(client: pg.PoolClient): Promise<PreparedTables> {
  const own = await client.query<{ name: string }>(ownRelations("'r'"));
  const tables = own.rows.map(({ name }) => name).filter((name) => name !== "migration");
  const keys = await client.query<{ table: string; name: string; definition: string }>(
    `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where contype = 'f' and conparentid = 0 and connamespace = current_schema()::regnamespace`,
  );
  for (const { table, name } of keys.rows) {
    await client.query(`alter table ${table} drop constraint ${pg.escapeIdentifier(name)}`);
  }
  const names = tables.map((name) => pg.escapeIdentifier(name));
  for (const name of names) await client.query(`alter table ${name} disable trigger user`);
  if (names.length > 0) await client.query(`truncate ${names.join(", ")}`);
  return {
    tables: new Set(tables),
    finish: [
      ...keys.rows.map(
        ({ table, name, definition }) =>
          `alter table ${table} add constraint ${pg.escapeIdentifier(name)} ${definition}`,
      ),
      ...names.map((name) => `alter table ${name} enable trigger user`),
    ],
  };
}

async function fill(
  client: pg.PoolClient,
  parts: AsyncGenerator<DumpPart, void, void>,
  tables: ReadonlySet<string>,
): Promise<DumpTotals> {
  let rows = 0;
  let filled = 0;
  let part = await nextPart(parts);
  while (part.kind !== "end") {
    if (part.kind === "sequence") {
      await client.query("select setval($1::regclass, $2, $3)", [
        pg.escapeIdentifier(part.name),
        part.value,
        part.isCalled,
      ]);
      part = await nextPart(parts);
      continue;
    }
    if (part.kind !== "table" || !tables.has(part.name)) {
      throw new InvalidInputError(
        `the backup has ${part.kind === "table" ? `a table ${part.name}` : `${part.kind} out of place`}, which is not Offstage's: nothing was restored`,
      );
    }
    const copied = await fillTable(client, part, parts);
    rows += copied.rows;
    filled += 1;
    part = copied.following;
  }
  if (rows !== part.rows || filled !== part.tables) {
    throw new InvalidInputError(`the backup's footer says ${part.rows} rows, but it has ${rows}: nothing was restored`);
  }
  return { rows, tables: filled };
}

async function fillTable(
  client: pg.PoolClient,
  { name, columns }: Extract<DumpPart, { kind: "table" }>,
  parts: AsyncGenerator<DumpPart, void, void>,
): Promise<{ rows: number; following: DumpPart }> {
  let following = await nextPart(parts);
  async function* pieces(): AsyncGenerator<Buffer, void, void> {
    for (; following.kind === "rows"; following = await nextPart(parts)) yield following.bytes;
  }
  const list = columns.map((column) => pg.escapeIdentifier(column)).join(", ");
  const copy = client.query(copyFrom(`copy ${pg.escapeIdentifier(name)} (${list}) from stdin`));
  await pipeline(Readable.from(pieces()), copy);
  return { rows: copy.rowCount, following };
}

async function nextPart(parts: AsyncGenerator<DumpPart, void, void>): Promise<DumpPart> {
  const { done, value } = await parts.next();
  if (done === true) throw new InvalidInputError("the backup is truncated: nothing was restored");
  return value;
}
