import type { Database } from "../database/database.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import type { Page, PageQuery } from "../domain/fields/list.ts";
import { isUuid } from "../domain/fields/uuid.ts";

/**
 * A position in a list. Lists are sorted newest first by (created_at, id), and a cursor encodes that pair of a page's
 * last row, so that no query counts or skips rows.
 */
export interface Position {
  readonly createdAt: string;
  readonly id: string;
}

/**
 * Decodes a cursor; null if there is none.
 * @throws InvalidInputError if the cursor is malformed
 */
export function readCursor(cursor: string | undefined): Position | null {
  if (cursor === undefined) return null;
  const [createdAt = "", id = ""] = Buffer.from(cursor, "base64url").toString().split(" ");
  if (!isTime(createdAt) || !isUuid(id)) {
    throw new InvalidInputError("cursor: must be the nextCursor of the previous page");
  }
  return { createdAt, id };
}

/** Encodes a position as a cursor. */
export const cursorOf = ({ createdAt, id }: Position): string =>
  Buffer.from(`${createdAt} ${id}`).toString("base64url");

/** Checks for the format of `cursorColumn`, and for a date that exists: PostgreSQL rejects February 30. */
function isTime(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/u.test(text)) return false;
  const time = new Date(text);
  return !Number.isNaN(time.valueOf()) && time.toISOString().startsWith(text.slice(0, 19)) && !text.startsWith("0000");
}

/**
 * SQL for `cursor_time`, in microseconds. A JavaScript Date has only milliseconds, so rows of the same millisecond
 * could be skipped.
 */
export const cursorColumn = (table: string): string => `${timeOfCursor(`${table}.created_at`)} as cursor_time`;

/** SQL of a time as a cursor has it. @param column of type timestamptz */
export const timeOfCursor = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/**
 * SQL for a time in the form of the API, as `Date.toISOString` writes it: UTC, with milliseconds.
 * @param column a column of type timestamptz
 */
export const isoTime = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** An item of a list, with what its cursor is made of. */
export type WithCursor<T> = T & { cursor_time: string };

/** For `pageOf`: the row is the item. */
export function withoutCursor<T>(row: WithCursor<T>): T {
  const item: T & { cursor_time?: string } = { ...row };
  delete item.cursor_time;
  return item;
}

/**
 * Makes a page of rows that were queried with a limit of `limit + 1`: an additional row means that there is a next
 * page.
 */
export function pageOf<Row extends { id: string; cursor_time: string }, T>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => T,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return {
    items: shown.map(toItem),
    nextCursor: more ? cursorOf({ createdAt: last.cursor_time, id: last.id }) : null,
  };
}

/** The rows that `listRows` lists. */
export interface ListedRows {
  /** Name of the table, or of `from`'s rows. */
  readonly table: string;
  /** SQL of an item's fields, `id` among them. */
  readonly columns: string;
  /** SQL after `from`, if that is more than the table. It has the columns `organization_id`, `created_at` and `id`. */
  readonly from?: string;
  /** SQL of those that are listed, with `values` as $5, $6 …; if omitted, all of the organization's are. */
  readonly condition?: string;
  readonly values?: readonly unknown[];
}

/**
 * Lists an organization's rows, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listRows<T extends { readonly id: string }>(
  database: Database,
  organizationId: string,
  { limit, cursor }: PageQuery,
  { table, columns, from = table, condition = "true", values = [] }: ListedRows,
): Promise<Page<T>> {
  const after = readCursor(cursor);
  const { rows } = await database.pool.query<WithCursor<T>>(
    `select ${columns}, ${cursorColumn(table)} from ${from}
     where organization_id = $1 and (${condition})
       and ($3::timestamptz is null or (created_at, id) < ($3::timestamptz, $4::uuid))
     order by created_at desc, id desc limit $2`,
    [organizationId, limit + 1, after?.createdAt, after?.id, ...values],
  );
  return pageOf(rows, limit, withoutCursor);
}
