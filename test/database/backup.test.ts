import { randomBytes } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { definitionsDirectory, migrationsDirectory } from "../../src/database/database.ts";
import { checkBackup, readBackup, writeBackup } from "../../src/database/dump/backup-file.ts";
import { dumpDatabase } from "../../src/database/dump/dump.ts";
import { loadDatabase } from "../../src/database/dump/load.ts";
import { migrate } from "../../src/database/migrate.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../database.ts";
import { waitFor } from "../wait-for.ts";
import { checksums, fillEveryTable } from "./fill.ts";

const version = "1.2.3";
const { signal } = new AbortController();
let folder: string;
const opened: TestDatabase[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-backup-"));
});

afterEach(async () => {
  for (const database of opened.splice(0)) await database.close();
  await rm(folder, { recursive: true, force: true });
});

async function pool(make: () => Promise<TestDatabase>): Promise<pg.Pool> {
  const made = await make();
  opened.push(made);
  return made.database.pool;
}

async function backUp(source: pg.Pool, name = "all.backup"): Promise<string> {
  const file = join(folder, name);
  await writeBackup(file, dumpDatabase(source, { version }), signal);
  return file;
}

const restore = (target: pg.Pool, file: string, migrations = migrationsDirectory) =>
  loadDatabase(target, readBackup(file, signal), migrations);

/** Whether unpacking tells other bytes, or none: a few bits of what gzip packs (padding, lengths of codes) say nothing. */
function isHarmed(packed: Buffer, plain: Buffer): boolean {
  try {
    return !gunzipSync(packed).equals(plain);
  } catch {
    return true;
  }
}

async function isEmpty(target: pg.Pool): Promise<boolean> {
  const { rowCount } = await target.query("select 1 from pg_class where relnamespace = 'public'::regnamespace");
  return rowCount === 0;
}

describe("a backup", () => {
  test("brings every table back as it was, whatever is in it", async () => {
    const source = await pool(createTestDatabase);
    const tables = await fillEveryTable(source);
    const target = await pool(createEmptyDatabase);
    const file = await backUp(source);
    const report = await restore(target, file);
    const before = await checksums(source);
    // Three of each, and what triggers of the database add to them.
    const counts = Object.values(before).map((sum) => Number.parseInt(sum, 10));
    const others = Object.keys(before).filter((table) => before[table]?.startsWith("3 ") !== true);
    expect(others).toEqual(["insight_mark"]);
    const rows = counts.reduce((sum, count) => sum + count, 0);
    expect(report).toMatchObject({ offstage: version, tables: tables.length, rows });
    expect(await checksums(target)).toEqual(before);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(["all.backup"]);
    // Foreign keys are in force again.
    await expect(target.query("delete from organization")).rejects.toThrow(/foreign key/u);
  });

  test("of what is empty but for its schema can be restored", async () => {
    const source = await pool(createTestDatabase);
    const target = await pool(createEmptyDatabase);
    await restore(target, await backUp(source));
    expect(await checksums(target)).toEqual(await checksums(source));
  });

  test("carries every type, identities, generated columns, circles of keys and what a migration planted", async () => {
    const migrations = join(folder, "migrations");
    await cp(migrationsDirectory, migrations, { recursive: true });
    await writeFile(
      join(migrations, "9001_all.sql"),
      `create table kind (id bigint generated always as identity primary key, name text, doubled text generated always as (name || name) stored);
       insert into kind (name) values ('planted');
       create table one (id serial primary key, "other Id" integer, float float8, real real, small smallint, money numeric,
         span interval, day date, clock time, moment timestamptz, local timestamp, network inet, flags boolean[],
         matrix text[][], bits bit varying, doc json, docb jsonb, raw bytea, fixed char(5), number_range int4range);
       create table two (id serial primary key, one_id integer not null references one deferrable);
       alter table one add foreign key ("other Id") references two;
       create function refuse() returns trigger language plpgsql as $$ begin raise 'a trigger ran'; end $$;`,
    );
    const source = await pool(createEmptyDatabase);
    await migrate(source, migrations);
    await source.query("delete from kind; insert into kind (name) values ('kept'), (null)");
    await source.query("insert into one (id) values (1)");
    await source.query("insert into two (id, one_id) values (7, 1)");
    await source.query(
      `update one set "other Id" = 7, float = 'NaN', real = 1e-30, small = -1, money = 'NaN', span = '1 mon -2 days 03:04:05.6',
         day = 'infinity', clock = '23:59:59.999999', moment = '-infinity', local = '0044-03-15 BC', network = '::1/128',
         flags = '{t,null,f}', matrix = '{{a,"b,c"},{"\\\\.",null}}', bits = '101', doc = '{"a" : 1}', docb = '{"b": "\\u00fc"}',
         raw = '\\x00ff00', fixed = 'ab', number_range = '[1,5)'`,
    );
    await source.query(
      "insert into one (id, float, real) values (2, 0.1::float8 + 0.2::float8, 3.4028235e38), (3, '-Infinity', null)",
    );
    await source.query("select setval('one_id_seq', 41)");
    await source.query("create trigger refuse before insert on two execute function refuse()");
    const target = await pool(createEmptyDatabase);
    await restore(target, await backUp(source), migrations);
    expect(await checksums(target)).toEqual(await checksums(source));
    const next = await target.query<{ id: string }>("insert into kind (name) values ('next') returning id");
    expect(next.rows[0]?.id).toBe("4");
    expect((await target.query<{ id: number }>("insert into one default values returning id")).rows[0]?.id).toBe(42);
    // Never called: the first is the first.
    expect((await target.query("select nextval('two_id_seq')::integer as id")).rows).toEqual([{ id: 1 }]);
    await expect(target.query("insert into two (one_id) values (99)")).rejects.toThrow(/foreign key/u);
  });

  test("is of one moment, while others write", async () => {
    const source = await pool(createTestDatabase);
    await source.query("insert into organization (id, name) values (gen_random_uuid(), 'one')");
    await source.query(
      `insert into session (id, organization_id, title, description, status, branch_name)
       select gen_random_uuid(), id, '', '', 'running', '' from organization, generate_series(1, 4)`,
    );
    let writing = true;
    const write = async (): Promise<void> => {
      for (let seq = 1; writing; seq += 1) {
        // Each adds an event and counts it, as the server does.
        await source.query(
          `with counted as (update session set last_event = last_event + 1 returning id, last_event)
           insert into event (session_id, seq, type, data) select id, last_event, 'notice', '{}' from counted`,
        );
      }
    };
    const writers = write();
    try {
      for (let round = 0; round < 3; round += 1) {
        const target = await pool(createEmptyDatabase);
        await restore(target, await backUp(source, `${round}.backup`));
        const { rows } = await target.query<{ wrong: string; events: string }>(
          `select count(*) filter (where last_event <> (select count(*) from event where session_id = session.id)) as wrong,
             sum(last_event) as events from session`,
        );
        expect(rows[0]?.wrong).toBe("0");
      }
    } finally {
      writing = false;
      await writers;
    }
  });

  test("of an older schema is brought up to this one", async () => {
    const older = join(folder, "older");
    await cp(migrationsDirectory, older, { recursive: true });
    for (const name of await readdir(older)) if (!/^000[1-5]_/u.test(name)) await rm(join(older, name));
    const source = await pool(createEmptyDatabase);
    await migrate(source, older);
    await fillEveryTable(source);
    const target = await pool(createEmptyDatabase);
    const { migrations } = await restore(target, await backUp(source));
    expect(migrations.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5]);
    // Nothing is left to do for a server that starts on it, and what it holds is there.
    const before = await target.query("select number, ran_at from migration order by number");
    await migrate(target, migrationsDirectory);
    expect((await target.query("select number, ran_at from migration order by number")).rows).toEqual(before.rows);
    expect(before.rows.length).toBe((await readdir(migrationsDirectory)).length);
    const [kept] = (await target.query<{ kept: string }>("select count(*) as kept from session")).rows;
    expect(kept?.kept).toBe("3");
  });

  test("has no record of the functions, so that the server that starts on a restored database defines them", async () => {
    const source = await pool(createTestDatabase);
    const { rows: applied } = await source.query("select name, sha256, revision from sql_definition order by name");
    expect(applied.length).toBeGreaterThan(10);
    // A node of the version before knows the table as one of many, and dumps it too.
    async function* ofOlderNode() {
      for await (const part of dumpDatabase(source, { version })) {
        if (part.kind === "end") {
          yield { kind: "table", name: "sql_definition", columns: ["name", "sha256", "revision"] } as const;
          yield { kind: "rows", bytes: Buffer.from("claim_session\tdeadbeef\t9000\n") } as const;
          yield { ...part, tables: part.tables + 1, rows: part.rows + 1 };
        } else yield part;
      }
    }
    for (const dump of [dumpDatabase(source, { version }), ofOlderNode()]) {
      const target = await pool(createEmptyDatabase);
      await loadDatabase(target, dump, migrationsDirectory);
      expect((await target.query("select from sql_definition")).rowCount).toBe(0);
      await migrate(target, migrationsDirectory, definitionsDirectory);
      expect((await target.query("select name, sha256, revision from sql_definition order by name")).rows).toEqual(
        applied,
      );
    }
  });

  test("leaves a file alone that is there already", async () => {
    const source = await pool(createTestDatabase);
    const file = await backUp(source);
    const before = await readFile(file);
    await expect(backUp(source)).rejects.toThrow("already exists");
    expect(await readFile(file)).toEqual(before);
  });

  test("says where it can't be written, and where none can be read", async () => {
    const source = await pool(createTestDatabase);
    await writeFile(join(folder, "file"), "");
    await expect(backUp(source, "file/a.backup")).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("can't be written (ENOTDIR)") as string,
    });
    await expect(backUp(source, "none/a.backup")).rejects.toThrow("does not exist: create it first");
    await expect(checkBackup(join(folder, "file/a.backup"), new AbortController().signal)).rejects.toThrow(
      "give the path of a backup",
    );
  });

  test("that is interrupted leaves no file", async () => {
    const source = await pool(createTestDatabase);
    await fillEveryTable(source);
    const stopped = new AbortController();
    const parts = dumpDatabase(source, { version });
    async function* halfWay() {
      let count = 0;
      for await (const part of parts) {
        if ((count += 1) === 5) stopped.abort();
        yield part;
      }
    }
    await expect(writeBackup(join(folder, "half"), halfWay(), stopped.signal)).rejects.toThrow("interrupted");
    expect(await readdir(folder)).toEqual([]);
    // The source's connection is free again, with nothing held.
    await waitFor(async () => {
      const { rowCount } = await source.query(
        `select 1 from pg_locks where relation = 'session'::regclass
           and database = (select oid from pg_database where datname = current_database())`,
      );
      return rowCount === 0;
    }, "nothing is held");
  });
});

describe("a restore refuses, with nothing changed,", () => {
  test("a database that is not empty", async () => {
    const source = await pool(createTestDatabase);
    const file = await backUp(source);
    const used = await pool(createTestDatabase);
    await fillEveryTable(used);
    const before = await checksums(used);
    await expect(restore(used, file)).rejects.toThrow("not empty");
    expect(await checksums(used)).toEqual(before);
    const foreign = await pool(createEmptyDatabase);
    await foreign.query("create table something_else (id integer)");
    await expect(restore(foreign, file)).rejects.toThrow("not empty");
  });

  test("a backup of a newer Offstage", async () => {
    const newer = join(folder, "migrations");
    await cp(migrationsDirectory, newer, { recursive: true });
    await writeFile(join(newer, "9001_newer.sql"), "create table newer (id integer)");
    const source = await pool(createEmptyDatabase);
    await migrate(source, newer);
    const target = await pool(createEmptyDatabase);
    await expect(restore(target, await backUp(source))).rejects.toThrow(/9001_newer\.sql.*newer one/u);
    expect(await isEmpty(target)).toBe(true);
    const text = gunzipSync(await readFile(join(folder, "all.backup"))).toString("latin1");
    const format = join(folder, "format.backup");
    await writeFile(format, gzipSync(Buffer.from(text.replace('"format":1', '"format":2'), "latin1")));
    await expect(restore(target, format)).rejects.toThrow("newer format");
    expect(await isEmpty(target)).toBe(true);
  });

  test("a file that was cut off anywhere, or changed in one bit, or is something else", async () => {
    const source = await pool(createTestDatabase);
    await fillEveryTable(source);
    const whole = await readFile(await backUp(source));
    const plain = gunzipSync(whole);
    const target = await pool(createEmptyDatabase);
    const broken: [string, Buffer][] = [];
    for (let share = 0; share < 40; share += 1) {
      const at = Math.floor((whole.length * share) / 40);
      broken.push([`cut at ${at}`, whole.subarray(0, at)]);
      // The first ten bytes are gzip's header, of which some say nothing on what follows.
      const bit = Buffer.from(whole);
      const changed = Math.max(at, 10);
      bit[changed] = (bit[changed] ?? 0) ^ 0x10;
      if (isHarmed(bit, plain)) broken.push([`changed at ${changed}`, bit]);
      // As if it had been packed again after the harm.
      const cut = Math.floor((plain.length * share) / 40);
      broken.push([`packed after a cut at ${cut}`, gzipSync(plain.subarray(0, cut))]);
      const other = Buffer.from(plain);
      other[cut] = (other[cut] ?? 0) ^ 0x01;
      broken.push([`packed after a change at ${cut}`, gzipSync(other)]);
    }
    broken.push(["cut before the last byte", whole.subarray(0, -1)]);
    broken.push(["packed with something after its end", gzipSync(Buffer.concat([plain, Buffer.from("x")]))]);
    broken.push(["noise", randomBytes(5_000)], ["packed noise", gzipSync(randomBytes(5_000))]);
    expect(broken.filter(([name]) => name.startsWith("changed")).length).toBeGreaterThan(30);
    const taken: string[] = [];
    const file = join(folder, "broken");
    for (const [index, [name, bytes]] of broken.entries()) {
      await writeFile(file, bytes);
      const error: unknown = await checkBackup(file, signal).then(
        () => null,
        (caught: unknown) => caught,
      );
      if (!(error instanceof Error) || !/damaged|not an Offstage backup|newer/u.test(error.message))
        taken.push(`${name}: ${String(error)}`);
      if (index % 7 !== 0 && index < broken.length - 4) continue;
      // Not looked at before, it is found out all the same before anything is kept.
      await restore(target, file).then(
        () => taken.push(`restored ${name}`),
        () => undefined,
      );
    }
    expect(taken).toEqual([]);
    expect(await isEmpty(target)).toBe(true);
    await writeFile(file, whole);
    await checkBackup(file, signal);
  });

  test("a file that is not there", async () => {
    await expect(checkBackup(join(folder, "nothing"), signal)).rejects.toThrow("can't be read");
    await expect(checkBackup(folder, signal)).rejects.toThrow("can't be read");
  });
});

test("a restore whose connection is lost half-way leaves nothing, and can be repeated", async () => {
  const source = await pool(createTestDatabase);
  await fillEveryTable(source);
  const target = await pool(createEmptyDatabase);
  const file = await backUp(source);
  const parts = readBackup(file, signal);
  async function* cutOff() {
    for await (const part of parts) {
      if (part.kind === "table" && part.name === "session") {
        await source.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and state <> 'idle'",
          [target.options.connectionString?.split("/").at(-1)?.split("?")[0]],
        );
      }
      yield part;
    }
  }
  await expect(loadDatabase(target, cutOff(), migrationsDirectory)).rejects.toThrow(/terminat/u);
  expect(await isEmpty(target)).toBe(true);
  await restore(target, file);
  expect(await checksums(target)).toEqual(await checksums(source));
});
