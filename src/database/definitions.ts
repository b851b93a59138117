import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type pg from "pg";
import { inYieldingTransaction } from "./yielding-transaction.ts";

/** The current definition of one SQL function: the file `<name>.sql`, in whichever folder of its set. */
export interface Definition {
  /** Of the file and of its function; of an overload, `<function>.<its difference>`. */
  readonly name: string;
  /** Of its file, from the folder of its set. */
  readonly path: string;
  readonly sql: string;
  /** Of `sql`, in hexadecimal. */
  readonly sha256: string;
}

/** The definitions of one program. */
export interface DefinitionSet {
  /** Grows with each change of a definition, so that it says which of two sets is newer. */
  readonly revision: number;
  /** In the order of their dependencies: each after those that it needs. */
  readonly definitions: readonly Definition[];
}

/**
 * Reads the definitions of a folder and of those in it. The first line of each file names the definitions that it needs, for example
 * `-- needs: claimable, move_session`, and `revision.json` has the set's revision.
 * @throws Error if a file needs one that does not exist, or one that needs it, and if two files have the same name
 */
export async function readDefinitions(directory: string): Promise<DefinitionSet> {
  const { revision } = JSON.parse(await readFile(join(directory, "revision.json"), "utf8")) as { revision: number };
  const paths = (await readdir(directory, { recursive: true })).filter((file) => file.endsWith(".sql"));
  const named = paths.map((path) => ({ name: basename(path, ".sql"), path }));
  const files = new Map<string, Definition>();
  for (const { name, path } of named.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const before = files.get(name);
    if (before !== undefined) throw new Error(`${before.path} and ${path} have the same name`);
    const sql = await readFile(join(directory, path), "utf8");
    files.set(name, { name, path, sql, sha256: createHash("sha256").update(sql).digest("hex") });
  }
  return { revision, definitions: inOrder(files) };
}

function inOrder(files: ReadonlyMap<string, Definition>): Definition[] {
  const ordered = new Set<Definition>();
  const visit = (name: string, path: readonly string[]): void => {
    const definition = files.get(name);
    if (definition === undefined) throw new Error(`${path.at(-1)}.sql needs ${name}, which has no file`);
    if (path.includes(name)) throw new Error(`definitions need each other: ${[...path, name].join(" → ")}`);
    for (const needed of neededBy(definition.sql)) visit(needed, [...path, name]);
    ordered.add(definition);
  };
  for (const name of files.keys()) visit(name, []);
  return [...ordered];
}

/** Reads a file's first line, for example `-- needs: claimable, lane`. */
function neededBy(sql: string): string[] {
  const list = /^-- needs: (.+)\n/u.exec(sql)?.[1];
  return list === undefined ? [] : list.split(", ");
}

/**
 * Brings the database's functions to the definitions of `directory`, all in one transaction, and then their triggers: applies each file whose content
 * differs from what the database records. If a newer Offstage has applied its own, nothing is changed, so that an old
 * node that restarts during an upgrade does not put its functions back. Programs with the same revision and different
 * files exist only between two commits of a developer: there the last one to start wins.
 *
 * This is safe while other nodes work. `create or replace function` locks no table and waits for no transaction: a call
 * that runs ends with the body that it began with, and the next transaction of each connection has the new one. Between
 * them a new body may call an old one, and an old body a new one. So a definition keeps the signature that nodes of the
 * version before call; another signature is another function, an overload with a file of its own if it must change, and a
 * migration of a later version drops the old one. A trigger does lock its table, for a moment and after those who write it: each is
 * made in a transaction of its own, which lets them pass like a migration's, so that no two tables are locked at once. What a crash
 * leaves out is done by the next start.
 * @param client a connection that holds the migration lock
 * @throws Error with the file's name if PostgreSQL refuses it; then no function is changed
 */
export async function applyDefinitions(client: pg.ClientBase, directory: string): Promise<void> {
  const { revision, definitions } = await readDefinitions(directory);
  const { rows } = await client.query<{ name: string; sha256: string; revision: number }>(
    "select name, sha256, revision from sql_definition",
  );
  if (rows.some((row) => row.revision > revision)) return;
  const applied = new Map(rows.map(({ name, sha256 }) => [name, sha256]));
  const changed = definitions.filter(({ name, sha256 }) => applied.get(name) !== sha256);
  if (changed.length === 0) return;
  const withTriggers = changed.filter(({ sql }) => beforeTrigger.test(sql));
  await inYieldingTransaction(client, async () => {
    for (const definition of changed) {
      await run(client, definition, definition.sql.split(beforeTrigger, 1)[0] ?? "");
      if (!withTriggers.includes(definition)) await record(client, definition, revision);
    }
  });
  for (const definition of withTriggers) {
    for (const trigger of definition.sql.split(beforeTrigger).slice(1)) {
      await inYieldingTransaction(client, () => run(client, definition, trigger));
    }
    await record(client, definition, revision);
  }
}

/** The beginning of each trigger of a file, behind its function. */
const beforeTrigger = /^(?=create or replace trigger )/mu;

async function run(client: pg.ClientBase, { name }: Definition, sql: string): Promise<void> {
  try {
    await client.query(sql);
  } catch (cause) {
    throw new Error(`the SQL definition ${name}.sql failed`, { cause });
  }
}

async function record(client: pg.ClientBase, { name, sha256 }: Definition, revision: number): Promise<void> {
  await client.query(
    `insert into sql_definition (name, sha256, revision) values ($1, $2, $3)
     on conflict (name) do update set sha256 = excluded.sha256, revision = excluded.revision, applied_at = now()`,
    [name, sha256, revision],
  );
}
