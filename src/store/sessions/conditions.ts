import type { SessionStatus } from "../../domain/sessions/status.ts";
import { readCursor } from "../cursor.ts";

/** Filter and page of a list of sessions. */
export interface SessionListQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly status?: SessionStatus | undefined;
  readonly automationId?: string | undefined;
  /** Id of the user who asked for it, or of the key if it is no user's. */
  readonly requestedBy?: string | undefined;
}

/**
 * The WHERE conditions of a list of sessions, without the words of a search. `bind` adds a value and returns its
 * placeholder.
 * @param rows whether `session` is the table, or what the index of words found, which has fewer columns
 * @throws InvalidInputError if the cursor is malformed
 */
export function conditionsOf(
  organizationId: string,
  { cursor, status, automationId, requestedBy }: SessionListQuery,
  rows: "table" | "found" = "table",
) {
  const after = readCursor(cursor);
  const values: unknown[] = [organizationId];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const conditions = ["session.organization_id = $1"];
  if (status !== undefined) conditions.push(`session.status = ${bind(status)}`);
  if (automationId !== undefined) conditions.push(`session.automation_id = ${bind(automationId)}`);
  if (requestedBy !== undefined) {
    const id = bind(requestedBy);
    const asked = `(session.requested_by = ${id} or (session.requested_by is null and session.created_by = ${id}))`;
    conditions.push(
      rows === "table"
        ? asked
        : `(select ${asked.replaceAll("session.", "whole.")} from session as whole where whole.id = session.id)`,
    );
  }
  if (after !== null) {
    conditions.push(
      `(session.created_at, session.id) < (${bind(after.createdAt)}::timestamptz, ${bind(after.id)}::uuid)`,
    );
  }
  return { conditions: conditions.join(" and "), values, bind };
}
