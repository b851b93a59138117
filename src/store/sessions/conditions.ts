import type { AttentionReason } from "../../domain/sessions/attention.ts";
import type { SessionStatus } from "../../domain/sessions/status.ts";
import { readCursor } from "../cursor.ts";
import { attentionOf } from "./attention.ts";
import { isUnread } from "./unread.ts";

/** Filter of a list of sessions: all that is given must be so. */
export interface SessionFilter {
  /** Any of these. */
  readonly status?: readonly SessionStatus[] | undefined;
  readonly automationId?: string | undefined;
  readonly repositoryId?: string | undefined;
  /** Id of the user who asked for it, or of the key if it is no user's. */
  readonly requestedBy?: string | undefined;
  /** All of these. */
  readonly label?: readonly string[] | undefined;
  /** Whether it is archived; omitted: it does not matter. */
  readonly archived?: boolean | undefined;
  /** Any of these. */
  readonly attention?: readonly AttentionReason[] | undefined;
  /** Id of the person who has not looked at its outcome. */
  readonly unreadBy?: string | undefined;
}

/** Filter and page of a list of sessions. */
export interface SessionListQuery extends SessionFilter {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** Adds a value to a statement. @returns its placeholder */
export type Bind = (value: unknown) => string;

/** SQL of the person who asked, as the index `session_person` has it. */
const personOf = (session: string): string => `coalesce(${session}.requested_by, ${session}.created_by)`;

/** SQL of what a filter asks of a row. @param session name of a row of the table, with all its columns */
export type FilterSql = (session: string, bind: Bind) => string;

/** The filters that a list has. */
export function filtersOf({
  status,
  automationId,
  repositoryId,
  requestedBy,
  label,
  archived,
  attention,
  unreadBy,
}: SessionFilter): Map<keyof SessionFilter, FilterSql> {
  const all: Readonly<Record<keyof SessionFilter, FilterSql | undefined>> = {
    status:
      status &&
      ((session, bind) =>
        status.length === 1 ? `${session}.status = ${bind(status[0])}` : `${session}.status = any(${bind(status)})`),
    automationId:
      automationId === undefined ? undefined : (session, bind) => `${session}.automation_id = ${bind(automationId)}`,
    repositoryId:
      repositoryId === undefined
        ? undefined
        : (session, bind) =>
            `exists (select from session_repository part where part.session_id = ${session}.id and part.repository_id = ${bind(repositoryId)})`,
    requestedBy:
      requestedBy === undefined ? undefined : (session, bind) => `${personOf(session)} = ${bind(requestedBy)}`,
    label: label && ((session, bind) => label.map((each) => hasLabel(session, bind(each))).join(" and ")),
    archived:
      archived === undefined ? undefined : (session) => `${session}.archived_at is ${archived ? "not " : ""}null`,
    unreadBy: unreadBy === undefined ? undefined : (session, bind) => isUnread(session, bind(unreadBy)),
    attention: attention && ((session, bind) => `${attentionOf(session)} && ${bind(attention)}::text[]`),
  };
  const entries = Object.entries(all) as [keyof SessionFilter, FilterSql | undefined][];
  return new Map(entries.flatMap(([name, sql]) => (sql === undefined ? [] : [[name, sql]])));
}

const hasLabel = (session: string, label: string): string =>
  `exists (select from session_label where session_id = ${session}.id and session_label.label = ${label})`;

/** Filters that a result of the index of words has the columns for. */
const inFound: ReadonlySet<keyof SessionFilter> = new Set(["status", "automationId"]);

/** Whether a list is narrowed by more than whether sessions are archived. */
export function isFiltered(query: SessionFilter): boolean {
  return [...filtersOf(query).keys()].some((name) => name !== "archived");
}

/**
 * The WHERE conditions of a list of sessions, without the words of a search. `bind` adds a value and returns its
 * placeholder.
 * @param rows whether `session` is the table, or what the index of words found, which has fewer columns
 * @throws InvalidInputError if the cursor is malformed
 */
export function conditionsOf(organizationId: string, query: SessionListQuery, rows: "table" | "found" = "table") {
  const after = readCursor(query.cursor);
  const values: unknown[] = [organizationId];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const conditions = ["session.organization_id = $1"];
  const ofWhole: string[] = [];
  for (const [name, sqlOf] of filtersOf(query)) {
    if (rows === "table" || inFound.has(name)) conditions.push(sqlOf("session", bind));
    else ofWhole.push(sqlOf("whole", bind));
  }
  if (ofWhole.length > 0) {
    conditions.push(`(select ${ofWhole.join(" and ")} from session as whole where whole.id = session.id)`);
  }
  if (after !== null) {
    conditions.push(
      `(session.created_at, session.id) < (${bind(after.createdAt)}::timestamptz, ${bind(after.id)}::uuid)`,
    );
  }
  return { conditions: conditions.join(" and "), values, bind };
}
