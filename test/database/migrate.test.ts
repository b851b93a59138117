import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerLock } from "../../src/database/embedded/connection.ts";
import { migrate } from "../../src/database/migrate.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../database.ts";
import { waitFor } from "../wait-for.ts";

const migrations = join(import.meta.dirname, "../../src/store/migrations");
const definitions = join(import.meta.dirname, "../../src/store/sql");
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

/** Waits until a statement of a migration waits for a lock, with a renewal's own statement meanwhile. */
async function whileWaiting(migrating: Promise<void>, statement: RegExp): Promise<void> {
  await waitFor(async () => {
    const { rows } = await pool.query<{ query: string }>(
      "select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return rows.some(({ query }) => statement.test(query));
  }, "the migration waits for a lock");
  // As a renewal of a lease: it changes rows of the table.
  const renewed = pool
    .query("update session set lease_until = now() where id = gen_random_uuid()")
    .then(() => "renewed");
  expect(await Promise.race([renewed, migrating.then(() => "migrated first")])).toBe("renewed");
}

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

/** All that a schema consists of, as PostgreSQL describes it. */
const descriptions = [
  `select table_name, column_name, data_type, is_nullable, column_default, generation_expression, collation_name
   from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position`,
  `select conrelid::regclass::text as of, conname, pg_get_constraintdef(oid) as definition, convalidated
   from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2`,
  `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition, indisvalid
   from pg_index join pg_class on pg_class.oid = indexrelid where relnamespace = 'public'::regnamespace order by 1`,
  `select pg_get_functiondef(oid) as definition from pg_proc where pronamespace = 'public'::regnamespace order by 1`,
  `select tgrelid::regclass::text as of, pg_get_triggerdef(oid) as definition from pg_trigger where not tgisinternal order by 1, 2`,
  `select relname, reloptions::text from pg_class where relnamespace = 'public'::regnamespace order by 1`,
  `select statistics_name::text from (select stxname as statistics_name from pg_statistic_ext) s order by 1`,
  "select number, name, works_from from migration order by number",
];

describe("on a database in which nothing is yet", () => {
  const opened: TestDatabase[] = [];
  const openEmpty = async (): Promise<pg.Pool> => {
    const empty = await createEmptyDatabase();
    opened.push(empty);
    return empty.database.pool;
  };

  afterEach(async () => {
    for (const empty of opened.splice(0)) await empty.close();
  });

  test("all migrations in one transaction make the same schema as each in its own", async () => {
    const [together, oneByOne] = [await openEmpty(), await openEmpty()];
    await migrate(together, migrations);
    const [first = "", ...others] = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
    for (const name of others) await rm(join(folder, name));
    await migrate(oneByOne, folder);
    expect((await oneByOne.query("select name from migration")).rows).toEqual([{ name: first }]);
    await migrate(oneByOne, migrations);
    for (const description of descriptions) {
      const { rows } = await together.query(description);
      expect(rows).toEqual((await oneByOne.query(description)).rows);
    }
    const { rows } = await together.query("select count(distinct ran_at)::integer as times from migration");
    expect(rows).toEqual([{ times: 1 }]);
  });

  test("a migration that fails is named, and leaves nothing of itself", async () => {
    const empty = await openEmpty();
    await addMigration("9001", "create table half_done (id integer); select 1 / 0;\n");
    await expect(migrate(empty, folder)).rejects.toThrow("migration 9001_newer.sql failed");
    expect((await empty.query("select to_regclass('half_done') as found")).rows).toEqual([{ found: null }]);
    await addMigration("9001", "create table half_done (id integer);\n");
    await migrate(empty, folder);
    expect((await empty.query("select number from migration where number = 9001")).rows).toHaveLength(1);
  });
});

test("a start with nothing to migrate and nobody to wait for takes the lock, looks, and gives it back", async () => {
  await migrate(pool, migrations, definitions);
  const asked: string[] = [];
  const client = await pool.connect();
  const query = client.query.bind(client) as (...parameters: unknown[]) => unknown;
  client.query = ((...parameters: unknown[]) => {
    asked.push(
      String(parameters[0])
        .split(/[\s(]+/u, 2)
        .join(" "),
    );
    return query(...parameters);
  }) as typeof client.query;
  client.release();
  await migrate(pool, migrations, definitions);
  expect(asked).toEqual([
    "select case",
    "create table",
    "alter table",
    "select number,",
    "select name,",
    "select pg_advisory_unlock",
  ]);
});

test("nodes of a version that prepared all columns of a row go on after a migration has added one, in use or idle", async () => {
  const old = await createEmptyDatabase();
  const { url } = old;
  for (const name of (await readdir(folder)).filter((one) => one > "0028")) await rm(join(folder, name));
  const before = new pg.Pool({ connectionString: url, max: 3, application_name: "before" });
  before.on("error", () => undefined);
  const after = [1, 2].map(() => new pg.Pool({ connectionString: url }));
  const prepared = { name: "read_repositories", text: "select * from repository" };
  let busy: pg.PoolClient | undefined;
  try {
    await migrate(before, folder);
    const clients = await Promise.all([1, 2, 3].map(() => before.connect()));
    for (const client of clients) await client.query(prepared);
    busy = clients.pop();
    for (const client of clients) client.release();
    await busy?.query("begin");
    const name = (await busy?.query<{ name: string }>("select current_database() as name"))?.rows[0]?.name;

    // Two nodes start at once: the one that waits for the other is not closed.
    const migrating = Promise.all(after.map((one) => migrate(one, migrations)));
    await waitFor(async () => {
      const { rows } = await pool.query<{ count: number }>(
        "select count(*)::integer from pg_stat_activity where datname = $1 and application_name = 'before'",
        [name],
      );
      return rows[0]?.count === 1;
    }, "the idle connections are closed");
    await busy?.query("commit");
    busy?.release();
    busy = undefined;
    await migrating;
    const columns = (await Promise.all([1, 2, 3].map(() => before.query(prepared)))).map(({ fields }) => fields.length);
    expect(new Set(columns)).toEqual(new Set([(await pool.query("select * from repository")).fields.length]));
  } finally {
    busy?.release(true);
    for (const one of [before, ...after]) await one.end();
    await old.close();
  }
});

test("a connection that holds a lock is not closed, as that by which an embedded database has an owner", async () => {
  const old = await createEmptyDatabase();
  const { url } = old;
  for (const name of (await readdir(folder)).filter((one) => one > "0028")) await rm(join(folder, name));
  const [owner, after] = [new pg.Client({ connectionString: url }), new pg.Pool({ connectionString: url })];
  owner.on("error", () => undefined);
  try {
    await migrate(after, folder);
    await owner.connect();
    await owner.query("select pg_advisory_lock($1)", [ownerLock]);
    await migrate(after, migrations);
    const { rows } = await after.query("select pg_try_advisory_lock($1) as free", [ownerLock]);
    expect(rows).toEqual([{ free: false }]);
  } finally {
    await owner.end();
    await after.end();
    await old.close();
  }
});

test("nodes of such a version also go on if a later migration fails", async () => {
  const old = await createEmptyDatabase();
  const { url } = old;
  const later = (await readdir(folder)).filter((one) => one > "0028");
  for (const name of later) await rm(join(folder, name));
  // Neither drops a connection because it is idle.
  const settings = { connectionString: url, max: 1, idleTimeoutMillis: 0 };
  const [before, after] = [new pg.Pool(settings), new pg.Pool(settings)];
  before.on("error", () => undefined);
  const prepared = { name: "read_repositories", text: "select * from repository" };
  try {
    await migrate(before, folder);
    await before.query(prepared);
    await cp(migrations, folder, { recursive: true });
    await addMigration("9001", "select 1 / 0;\n");
    await expect(migrate(after, folder)).rejects.toThrow("migration 9001_newer.sql failed");
    await waitFor(() => before.totalCount === 0, "the pool drops the connection that was closed");
    expect((await before.query(prepared)).fields.length).toBe(
      (await pool.query("select * from repository")).fields.length,
    );
  } finally {
    for (const one of [before, after]) await one.end();
    await old.close();
  }
});

describe("while somebody reads or writes a busy table for long, leases are renewed although", () => {
  let busy: pg.PoolClient;

  beforeEach(async () => {
    await migrate(pool, migrations);
    busy = await pool.connect();
    await busy.query("begin");
  });
  const end = async (): Promise<void> => {
    await busy.query("rollback");
    busy.release();
  };

  test("a migration waits to change that table", async () => {
    // As a backup does.
    await busy.query("select count(*) from session");
    await addMigration("9001", "-- works-from: 0001\nalter table session add column newer text;\n");
    const migrating = migrate(pool, folder);
    try {
      await whileWaiting(migrating, /^alter table session/mu);
    } finally {
      await end();
    }
    await migrating;
  });

  test("a migration waits to build an index of that table", async () => {
    await busy.query("update session set lease_until = now() where false");
    await addMigration(
      "9001",
      "-- works-from: 0001\n-- outside a transaction\ncreate index concurrently session_newer on session (lease_until, id);\n",
    );
    const migrating = migrate(pool, folder);
    try {
      await whileWaiting(migrating, /^create index concurrently/u);
    } finally {
      await end();
    }
    await migrating;
  });

  test("a migration changes tables in the order opposite to that of those who use them, and is tried again", async () => {
    // The migration, which waits first, is the one that finds the circle.
    await busy.query("set local deadlock_timeout = '1min'");
    await busy.query("update trigger set problem = null where false");
    await addMigration(
      "9001",
      "-- works-from: 0001\nalter table session add column newer text;\nalter table trigger add column newer text;\n",
    );
    const migrating = migrate(pool, folder);
    migrating.catch(() => undefined);
    try {
      await waitFor(async () => {
        const { rowCount } = await pool.query(
          "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        return rowCount === 1;
      }, "the migration waits for a lock");
      // Succeeds: the migration gives way.
      await busy.query("update session set lease_until = now() where false");
    } finally {
      await end();
    }
    await migrating;
    const { rows } = await pool.query(
      "select session.newer, other.newer as older from session, trigger as other where false",
    );
    expect(rows).toEqual([]);
  });
});

test("no migration from 0050 on holds two of the tables that other nodes write, which may lock them in another order", async () => {
  const shared = new Set([
    "organization",
    "automation",
    "trigger",
    "session",
    "job",
    "event",
    "message",
    "arrival",
    "repository",
  ]);
  const files = (await readdir(migrations)).filter((name) => name >= "0050");
  const several: string[] = [];
  for (const file of files) {
    const sql = await readFile(join(migrations, file), "utf8");
    if (sql.includes("\n-- outside a transaction\n")) continue;
    const altered = new Set([...sql.matchAll(/^alter table (?<table>\w+)/gmu)].map(({ groups }) => groups?.["table"]));
    const ofNodes = [...altered].filter((table) => table !== undefined && shared.has(table));
    if (ofNodes.length > 1) several.push(`${file}: ${ofNodes.join(", ")}`);
  }
  expect(several).toEqual([]);
});

/** Indexes that a migration makes under a lock against writes of their table, which exists and may be large. */
function blockingIndexes(sql: string): string[] {
  const code = sql.replaceAll(/--[^\n]*/gu, "");
  const made = new Set(
    [...code.matchAll(/create (?:unlogged )?table (?:if not exists )?(\w+)/giu)].map(([, table]) => table),
  );
  return [...code.matchAll(/create (?:unique )?index (?!concurrently)(?:if not exists )?(\w+)\s+on\s+(\w+)/giu)]
    .filter(([, , table]) => !made.has(table) && !small.has(table ?? ""))
    .map(([, index, table]) => `${index} on ${table}`);
}

/** Tables of a few rows for each person. */
const small: ReadonlySet<string> = new Set(["forge_account", "share_link", "login_link"]);
/** The first migration that builds its indexes while others write. */
const firstWithoutBlocking = 41;

test("no migration builds an index under a lock against writes of a table that may be large", async () => {
  const control =
    "create table made (a int);\ncreate index a on made (a);\ncreate unique index b\n  on session (id);\n-- create index c on job (id);";
  expect(blockingIndexes(control)).toEqual(["b on session"]);
  const names = (await readdir(migrations)).filter((name) => name.endsWith(".sql"));
  const checked = names.filter((name) => Number(name.slice(0, 4)) >= firstWithoutBlocking || name.startsWith("0022"));
  expect(checked.length).toBeGreaterThan(30);
  for (const name of checked) {
    const found = blockingIndexes(await readFile(join(migrations, name), "utf8"));
    expect({ name, found }).toEqual({ name, found: [] });
  }
});

/** What a change of a column may be for a table of any size: done at once, without a look at the rows that are there. */
const quickChange =
  /^(?:add column (?:if not exists )?\w+ (?!.*(?:\b(?:check|references|unique|generated)\b|random|clock_timestamp))(?:.*\bdefault\b.*|(?!.*not null).*)|drop (?:column|constraint) .*|alter column \w+ (?:set default .*|drop (?:default|not null))|add constraint .* not valid|set \(.*\))$/u;
const harmless =
  /^(?:create (?:(?:unlogged )?table|sequence|statistics|(?:or replace )?function|trigger|extension|type)|drop (?:table|sequence|function|trigger|index)|comment on|do )/u;
const inSteps =
  /^(?:create (?:unique )?index concurrently|drop index concurrently|alter table \w+ validate constraint)/u;

/** Statements that may hold a table that is there, and may be large, until all of its rows were read or written. */
function slowStatements(sql: string): string[] {
  const isOutside = sql.includes("\n-- outside a transaction\n");
  const code = sql.replaceAll(/--[^\n]*/gu, "").replaceAll(/\$(\w*)\$[\s\S]*?\$\1\$/gu, "''");
  const made = new Set(
    [...code.matchAll(/create (?:unlogged )?table (?:if not exists )?(\w+)/giu)].map(([, table]) => table ?? ""),
  );
  return code
    .split(";")
    .map((statement) => statement.replaceAll(/\s+/gu, " ").trim())
    .filter((statement) => {
      if (statement === "" || harmless.test(statement)) return false;
      if (isOutside && inSteps.test(statement)) return false;
      const [, indexed] = /^create (?:unique )?index .*? on (\w+)/u.exec(statement) ?? [];
      const [, altered = "", changes = ""] = /^alter table (\w+) (.*)$/u.exec(statement) ?? [];
      const table = indexed ?? altered;
      if (made.has(table) || small.has(table)) return false;
      // Commas within brackets belong to one change.
      const parts = changes.split(/, (?=(?:add|drop|alter|set)\b)/u);
      return altered === "" || !parts.every((part) => quickChange.test(part));
    });
}

/** The first migration for which the next test holds, and what is in later ones for a reason. */
const firstInSteps = 100;
const readsOnly: ReadonlySet<string> = new Set(["0106_insight_indexes.sql"]);

test("no migration rewrites, checks or changes all rows of a table while leases can't be renewed", async () => {
  const control = `create table made (a int); alter table made add column b int not null;
    alter table session add column a int; alter table session add column b int not null default 1, add column c text default now();
    alter table session add column d uuid not null default gen_random_uuid();
    alter table session alter column prompt type varchar; alter table session add constraint e check (a > 1);
    alter table session add constraint f check (a > 1) not valid; alter table session alter column a set not null;
    update session set a = 1; create index g on session (a); alter table session add column h int, alter column a set not null;`;
  expect(slowStatements(control)).toEqual([
    "alter table session add column d uuid not null default gen_random_uuid()",
    "alter table session alter column prompt type varchar",
    "alter table session add constraint e check (a > 1)",
    "alter table session alter column a set not null",
    "update session set a = 1",
    "create index g on session (a)",
    "alter table session add column h int, alter column a set not null",
  ]);
  const outside =
    "-- works-from: 0001\n-- outside a transaction\ncreate index concurrently a on session (a);\nupdate session set a = 1;\nalter table session validate constraint f;";
  expect(slowStatements(outside)).toEqual(["update session set a = 1"]);
  const names = (await readdir(migrations)).filter((name) => name.endsWith(".sql"));
  const checked = names.filter((name) => Number(name.slice(0, 4)) >= firstInSteps && !readsOnly.has(name));
  expect(checked.length).toBeGreaterThan(30);
  for (const name of checked) {
    const found = slowStatements(await readFile(join(migrations, name), "utf8"));
    expect({ name, found }).toEqual({ name, found: [] });
  }
});
