import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { definitionsDirectory, migrationsDirectory } from "../../src/database/database.ts";
import { readDefinitions } from "../../src/database/definitions.ts";
import { migrate } from "../../src/database/migrate.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../database.ts";

let folder: string;
const opened: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-definitions-"));
});

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
  await rm(folder, { recursive: true, force: true });
});

/** A pool whose statements fail instead of waiting long for a lock. */
async function poolOf(make: () => Promise<TestDatabase> = createTestDatabase): Promise<pg.Pool> {
  const made = await make();
  const pool = new pg.Pool({ connectionString: made.url, lock_timeout: 10_000 });
  // Dropping the database ends what is still idle on it.
  pool.on("error", () => undefined);
  opened.push(made, { close: () => pool.end() });
  return pool;
}

/** A set of definitions in a folder of its own. */
async function setOf(name: string, revision: number, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = join(folder, name);
  await cp(definitionsDirectory, directory, { recursive: true });
  await writeFile(join(directory, "revision.json"), JSON.stringify({ revision }));
  for (const [file, sql] of Object.entries(files)) await writeFile(join(directory, `${file}.sql`), sql);
  return directory;
}

const answer = (text: string): string =>
  `create or replace function answer() returns text language sql as $$ select '${text}' $$;\n`;

async function answerOf(pool: pg.Pool): Promise<string | undefined> {
  return (await pool.query<{ answer: string }>("select answer()")).rows[0]?.answer;
}

async function recorded(pool: pg.Pool): Promise<Map<string, { revision: number; at: number }>> {
  const { rows } = await pool.query<{ name: string; revision: number; applied_at: Date }>(
    "select * from sql_definition",
  );
  return new Map(rows.map(({ name, revision, applied_at: at }) => [name, { revision, at: at.getTime() }]));
}

const start = (pool: pg.Pool, definitions: string): Promise<void> => migrate(pool, migrationsDirectory, definitions);

describe("a program that starts", () => {
  test("makes triggers one by one, and waits with no table for another", async () => {
    const pool = await poolOf();
    const sql = `create or replace function told() returns trigger language plpgsql as $$ begin return null; end $$;
create or replace trigger told after insert on session for each row execute function told();
create or replace trigger told after insert on message for each row execute function told();
`;
    const busy = await pool.connect();
    await busy.query("begin; update message set status = status where false");
    const starting = start(pool, await setOf("triggers", 100, { told: sql }));
    try {
      await expect
        .poll(async () => {
          const { rows } = await pool.query<{ query: string }>(
            "select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
          );
          return rows.map(({ query }) => query.slice(0, 60));
        })
        .toEqual([expect.stringContaining("told after insert on message")]);
      // That of sessions is there, and no query waits for it; nor is the file done.
      await busy.query("set local lock_timeout = 100; update session set status = status where false");
      expect((await recorded(pool)).has("told")).toBe(false);
    } finally {
      await busy.query("rollback");
      busy.release();
    }
    await starting;
    const { rows } = await pool.query("select tgrelid::regclass::text as table from pg_trigger where tgname = 'told'");
    expect(rows).toEqual(expect.arrayContaining([{ table: "session" }, { table: "message" }]));
    expect((await recorded(pool)).get("told")?.revision).toBe(100);
  });

  test("applies a definition whose content has changed, and no other", async () => {
    const pool = await poolOf();
    await start(pool, await setOf("first", 100, { answer: answer("first") }));
    const before = await recorded(pool);
    await start(pool, await setOf("second", 101, { answer: answer("second") }));
    expect(await answerOf(pool)).toBe("second");
    const after = await recorded(pool);
    expect([...after].filter(([name, { at }]) => before.get(name)?.at !== at).map(([name]) => name)).toEqual([
      "answer",
    ]);
    expect(after.get("answer")?.revision).toBe(101);
  });

  test("applies each definition after those that it needs", async () => {
    const pool = await poolOf();
    // PostgreSQL refuses the body of a function in SQL that calls one that does not exist.
    const caller = `-- needs: answer\n${answer("").replaceAll("answer", "a_caller").replace("''", "answer()")}`;
    await start(pool, await setOf("set", 100, { a_caller: caller, answer: answer("called") }));
    expect((await pool.query("select a_caller() as said")).rows).toEqual([{ said: "called" }]);
  });

  test("does not put its functions back if a newer one has applied its own", async () => {
    const pool = await poolOf();
    const older = await setOf("older", 100, { answer: answer("older") });
    await start(pool, older);
    await start(pool, await setOf("newer", 101, { answer: answer("newer") }));
    const before = await recorded(pool);
    await start(pool, older);
    expect(await answerOf(pool)).toBe("newer");
    expect(await recorded(pool)).toEqual(before);
  });

  test("applies what a developer has changed since the last start, though the revision is the same", async () => {
    const pool = await poolOf();
    await start(pool, await setOf("set", 100, { answer: answer("before") }));
    await start(pool, await setOf("set", 100, { answer: answer("after") }));
    expect(await answerOf(pool)).toBe("after");
  });

  test("changes no function if one definition fails, says which, and tries again at the next start", async () => {
    const pool = await poolOf();
    await start(pool, await setOf("good", 100, { answer: answer("good") }));
    const broken = { answer: answer("broken"), z_broken: "create or replace function z_broken() nonsense;\n" };
    await expect(start(pool, await setOf("broken", 101, broken))).rejects.toThrow("SQL definition z_broken.sql failed");
    expect(await answerOf(pool)).toBe("good");
    await start(pool, await setOf("mended", 101, { answer: answer("mended") }));
    expect(await answerOf(pool)).toBe("mended");
  });

  test("applies each definition once if many start at the same time", async () => {
    const pool = await poolOf(createEmptyDatabase);
    await Promise.all(Array.from({ length: 8 }, () => start(pool, definitionsDirectory)));
    const { definitions } = await readDefinitions(definitionsDirectory);
    expect([...(await recorded(pool)).keys()].sort()).toEqual(definitions.map(({ name }) => name).sort());
  });

  test("waits for no transaction that has called the functions, and the next transaction has the new ones", async () => {
    const pool = await poolOf();
    await start(pool, await setOf("first", 100, { answer: answer("first") }));
    const busy = await pool.connect();
    try {
      await busy.query("begin");
      await busy.query("select answer(), claim_session('worker', interval '1 minute', 1, null, '{}')");
      await busy.query("lock table session in row exclusive mode");
      await start(pool, await setOf("second", 101, { answer: answer("second") }));
      await busy.query("commit");
      expect((await busy.query("select answer()")).rows).toEqual([{ answer: "second" }]);
    } finally {
      busy.release(true);
    }
  });
});

test("a set whose files need each other or one that does not exist, or have the same name, is refused", async () => {
  const needing = (name: string): string => `-- needs: ${name}\n${answer("")}`;
  await expect(readDefinitions(await setOf("gap", 1, { one: needing("nothing") }))).rejects.toThrow(
    "one.sql needs nothing",
  );
  const circle = await setOf("circle", 1, { one: needing("two"), two: needing("one") });
  await expect(readDefinitions(circle)).rejects.toThrow("one → two → one");
  const twice = await setOf("twice", 1, { one: answer("") });
  await mkdir(join(twice, "other"));
  await writeFile(join(twice, "other/one.sql"), answer(""));
  await expect(readDefinitions(twice)).rejects.toThrow(/one\.sql and .*one\.sql have the same name/u);
});

describe("a node of the version before", () => {
  test("finds every function that its migrations made, with the parameters and the result that it calls", async () => {
    const [before, after] = [await poolOf(createEmptyDatabase), await poolOf(createEmptyDatabase)];
    await migrate(before, migrationsDirectory);
    await migrate(after, migrationsDirectory, definitionsDirectory);
    const signatures = async (pool: pg.Pool): Promise<string[]> => {
      const { rows } = await pool.query<{ signature: string }>(
        `select format('%s(%s) returns %s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid)) as signature
         from pg_proc where pronamespace = 'public'::regnamespace order by 1`,
      );
      return rows.map(({ signature }) => signature);
    };
    const kept = await signatures(after);
    const called = await signatures(before);
    expect(called.length).toBeGreaterThan(15);
    expect(called.filter((signature) => !kept.includes(signature))).toEqual([]);
  });

  test("moves a session, parks it and tells webhooks by the calls that it knows", async () => {
    const pool = await poolOf();
    const organizationId = crypto.randomUUID();
    const id = crypto.randomUUID();
    await pool.query("insert into organization (id, name) values ($1, 'one')", [organizationId]);
    await pool.query(
      `insert into session (id, organization_id, title, description, status, branch_name, queued_at)
       values ($1, $2, '', '', 'queued', '', now())`,
      [id, organizationId],
    );
    await pool.query("select claim_session($1, $2 * interval '1 millisecond', $3, $4, $5)", [
      "old",
      60_000,
      9,
      null,
      [],
    ]);
    const move = "select from move_session($1, $2, $3, $4, $5, $6)";
    await pool.query(move, [id, "waiting", "used up", null, null, false]);
    await pool.query(
      `update session set worker = null, lease_until = null, waiting = $2,
         attempt = attempt + 1 where id = $1`,
      [id, JSON.stringify({ reason: "budget", text: "used up", neededUsd: null })],
    );
    await pool.query("update session set ready = true where id = $1", [id]);
    await pool.query("select claim_session($1, $2 * interval '1 millisecond', $3, $4, $5)", [
      "old",
      60_000,
      9,
      null,
      [],
    ]);
    await pool.query(move, [id, "completed", null, null, "Done.", false]);
    const { rows } = await pool.query("select announce_session(session), status, attempt, summary from session");
    // Two claims, and two fences between them: move_session sets one, and that node's own statement another.
    expect(rows).toEqual([{ announce_session: "", status: "completed", attempt: 4, summary: "Done." }]);
  });
});
