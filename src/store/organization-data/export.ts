import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Database } from "../../database/database.ts";
import { recordingName } from "../../domain/sessions/recording.ts";
import { getOrganization } from "../people/organizations.ts";
import {
  eventTable,
  organizationTables,
  sessionTable,
  tablesLeftOut,
  tablesOfSessions,
  type ExportedTable,
} from "./exported-tables.ts";
import { tarEnd, tarHeader, tarPadding } from "./tar.ts";

/** Number of the archive's form. A change that breaks a reader gets the next one. */
export const exportVersion = 1;

/** Most bytes of rows that are in memory at once; only a single row may be larger. */
const pageBytes = 2 * 1024 * 1024;
const rowsOfPage = 500;
const sessionsOfPage = 100;

/** The data to export, and its sources. */
export interface ExportSource {
  readonly database: Database;
  readonly organizationId: string;
  /** Folder of recordings on this machine; null: it has none. */
  readonly recordingsDirectory: string | null;
}

/** Counts what is written; the archive's last file. */
interface Written {
  readonly rows: Record<string, number>;
  diffs: number;
  recordings: number;
}

/**
 * All data of one organization as a tar archive, part by part: `manifest.json`, rows as JSON Lines in `<table>/<number>.jsonl`,
 * `diffs/`, `recordings/`, and `end.json`, without which the archive is incomplete. docs/operating.md describes it.
 *
 * Each page of rows is a separate statement, so no snapshot is held for as long as a client reads. Nothing that was
 * created after the export began is in it, so that rows refer to exported rows, unless those were deleted meanwhile.
 * @throws NotFoundError if there is no such organization
 */
export async function* exportOrganization(source: ExportSource): AsyncGenerator<Buffer, void, void> {
  const { database, organizationId } = source;
  const organization = await getOrganization(database, organizationId);
  const { rows } = await database.pool.query<{ until: string; migration: number; created_at: Date }>(
    `select now()::text as until, (select max(number) from migration) as migration, created_at
     from organization where id = $1`,
    [organizationId],
  );
  const { until = "", migration = 0, created_at: createdAt = new Date() } = rows[0] ?? {};
  const takenAt = new Date(until);
  const written: Written = { rows: {}, diffs: 0, recordings: 0 };
  const manifest = { ...manifestOf(), organization: { ...organization, createdAt }, takenAt, migration };
  yield* file("manifest.json", [`${JSON.stringify(manifest, null, 2)}\n`], takenAt);
  for (const exported of organizationTables) {
    const pages = pagesOf(database, exported, { column: "organization_id", of: organizationId, until });
    for await (const page of pages) yield* filed(exported, page.lines, written, takenAt);
  }
  const sessions = pagesOf(database, sessionTable, { column: "organization_id", of: organizationId, until });
  for await (const page of sessions) {
    yield* filed(sessionTable, page.lines, written, takenAt);
    for (const exported of tablesOfSessions) {
      const pages = pagesOf(database, exported, { column: "session_id", of: page.ids, until });
      for await (const { lines } of pages) yield* filed(exported, lines, written, takenAt);
    }
    for await (const lines of eventPagesOf(database, page.ids, until))
      yield* filed(eventTable, lines, written, takenAt);
    yield* diffsOf(source, page.ids, written, takenAt);
    yield* recordingsOf(source, page.ids, written, takenAt);
  }
  yield* file("end.json", [`${JSON.stringify({ complete: true, ...written }, null, 2)}\n`], takenAt);
  yield tarEnd;
}

/** The manifest, which describes the archive's format. */
function manifestOf() {
  const tables = [...organizationTables, sessionTable, ...tablesOfSessions, eventTable];
  const described = tables.map(({ table, columns, computed = {}, leftOut }) => [
    table,
    {
      files: `${table}/*.jsonl`,
      fields: [...columns.map(camelCase), ...Object.keys(computed)],
      leftOut: Object.fromEntries(Object.entries(leftOut).map(([column, reason]) => [camelCase(column), reason])),
    },
  ]);
  return {
    format: "offstage-organization",
    version: exportVersion,
    secrets: "none: no secret, credential, key or sign-in is in this archive, neither in plain text nor sealed",
    tables: Object.fromEntries(described) as Record<string, unknown>,
    tablesLeftOut,
    diffs: "diffs/<session>-<position>.patch, as session_repository names them",
    recordings:
      "recordings/<session>.jsonl, of those sessions whose recording is on the machine that made this archive",
    checkpoints: "when they were taken and how large they are; their contents are sealed, and are not in this archive",
  };
}

const camelCase = (column: string): string =>
  column.replaceAll(/_([a-z])/gu, (_match, letter: string) => letter.toUpperCase());

interface RowPage {
  readonly lines: readonly string[];
  /** Ids of its rows; of a table without ids, empty texts. */
  readonly ids: readonly string[];
}

/** Rows of a table, in pages that follow each other by the order's columns. */
async function* pagesOf(
  database: Database,
  { table, columns, computed = {}, order }: ExportedTable,
  { column, of, until }: { readonly column: string; readonly of: string | readonly string[]; readonly until: string },
): AsyncGenerator<RowPage, void, void> {
  const fields = [
    ...columns.map((name) => `${table}.${name} as "${camelCase(name)}"`),
    ...Object.entries(computed).map(([name, expression]) => `${expression} as "${name}"`),
  ];
  const keys = order.map(({ column: key }) => `${table}.${key}`).join(", ");
  const after = order.map(({ type }, index) => `$${index + 4}::${type}`).join(", ");
  // Rows of one organization or session come in order by an index; those of several sessions are sorted.
  const conditions = [`${table}.${column} = ${typeof of === "string" ? "$1::uuid" : "any($1::uuid[])"}`];
  if (columns.includes("created_at")) conditions.push(`${table}.created_at <= $2::timestamptz`);
  else conditions.push("$2::text is not null");
  const most = table === "session" ? sessionsOfPage : rowsOfPage;
  const textOf = (more: string, limit: number): string =>
    `select line, key, id from (
       select line, key, id, sum(octet_length(line)) over (order by place) - octet_length(line) as before, place from (
         select row_to_json((select found from (select ${fields.join(", ")}) as found))::text as line,
           array[${order.map(({ column: key }) => `${table}.${key}::text`).join(", ")}] as key,
           ${columns.includes("id") ? `${table}.id::text` : "''"} as id,
           row_number() over (order by ${keys}) as place
         from ${table} where ${[...conditions, more].join(" and ")} order by ${keys} limit ${limit}) as page) as counted
     where before < $3 order by place`;
  let last: readonly string[] | null = null;
  // Rows beyond the page's bytes are read for nothing, so that large rows are asked for a few at a time.
  let limit = Math.min(most, 50);
  for (;;) {
    const { rows }: { rows: { line: string; key: string[]; id: string }[] } = await database.pool.query(
      textOf(last === null ? "true" : `(${keys}) > (${after})`, limit),
      [of, until, pageBytes, ...(last ?? [])],
    );
    if (rows.length === 0) return;
    yield { lines: rows.map(({ line }) => line), ids: rows.map(({ id }) => id) };
    last = rows.at(-1)?.key ?? null;
    limit = Math.min(most, rows.length * 2);
  }
}

/** The events of sessions, of which one alone can have many pages, and many together only one. */
async function* eventPagesOf(
  database: Database,
  sessionIds: readonly string[],
  until: string,
): AsyncGenerator<readonly string[], void, void> {
  let lines: string[] = [];
  let bytes = 0;
  for (const id of sessionIds) {
    for await (const page of pagesOf(database, eventTable, { column: "session_id", of: id, until })) {
      lines.push(...page.lines);
      bytes += page.lines.reduce((sum, line) => sum + line.length, 0);
      if (bytes < pageBytes) continue;
      yield lines;
      lines = [];
      bytes = 0;
    }
  }
  if (lines.length > 0) yield lines;
}

/** A page of rows as the next file of its table. */
async function* filed(
  { table }: ExportedTable,
  lines: readonly string[],
  written: Written,
  takenAt: Date,
): AsyncGenerator<Buffer, void, void> {
  const before = written.rows[table] ?? 0;
  written.rows[table] = before + lines.length;
  // Named by its first row, so that names sort as the rows do.
  const name = `${table}/${String(before + 1).padStart(10, "0")}.jsonl`;
  yield* file(name, [`${lines.join("\n")}\n`], takenAt);
}

async function* diffsOf(
  { database }: ExportSource,
  sessionIds: readonly string[],
  written: Written,
  takenAt: Date,
): AsyncGenerator<Buffer, void, void> {
  const { rows } = await database.pool.query<{ session_id: string; position: number }>(
    "select session_id, position from session_repository where session_id = any($1::uuid[]) and patch <> '' order by 1, 2",
    [sessionIds],
  );
  for (const { session_id: id, position } of rows) {
    const found = await database.pool.query<{ patch: string | null }>(
      "select patch from session_repository where session_id = $1 and position = $2",
      [id, position],
    );
    const patch = found.rows[0]?.patch ?? null;
    if (patch === null) continue;
    written.diffs += 1;
    yield* file(`diffs/${id}-${position}.patch`, [patch], takenAt);
  }
}

async function* recordingsOf(
  { recordingsDirectory }: ExportSource,
  sessionIds: readonly string[],
  written: Written,
  takenAt: Date,
): AsyncGenerator<Buffer, void, void> {
  if (recordingsDirectory === null) return;
  for (const id of sessionIds) {
    const recording = await open(join(recordingsDirectory, recordingName(id))).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (recording === null) continue;
    try {
      // It may grow meanwhile: exactly as much as its header says is in the archive.
      const { size } = await recording.stat();
      yield tarHeader(`recordings/${recordingName(id)}`, size, takenAt);
      if (size > 0) yield* recording.createReadStream({ end: size - 1, autoClose: false });
      yield tarPadding(size);
      written.recordings += 1;
    } finally {
      await recording.close();
    }
  }
}

function* file(name: string, parts: readonly string[], takenAt: Date): Generator<Buffer, void, void> {
  const content = Buffer.from(parts.join(""));
  yield tarHeader(name, content.length, takenAt);
  yield content;
  yield tarPadding(content.length);
}
