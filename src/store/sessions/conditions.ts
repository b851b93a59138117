import type { SessionNeed } from "../../domain/sessions/needs.ts";
import { isFinal, type SessionStatus } from "../../domain/sessions/status.ts";
import { readCursor } from "../cursor.ts";

/** Filter and page of a list of sessions. */
export interface SessionListQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** One, or one of several. */
  readonly status?: SessionStatus | readonly SessionStatus[] | undefined;
  readonly automationId?: string | undefined;
  /** Id of the user who asked for it, or of the key if it is no user's. */
  readonly requestedBy?: string | undefined;
  readonly repositoryId?: string | undefined;
  readonly needs?: SessionNeed | undefined;
}

/** Failures of this time need a person; of longer ago, nobody will look at them any more. */
const failureDays = 7;
/** Failed sessions of the newest that are looked at: if more fail, it is one cause. */
const failuresAtMost = 200;

/** Ids of the sessions of the organization `$1` that need something; each part of it by an index of its own. */
const idsOf: Record<SessionNeed, string> = {
  person: `select id from session where organization_id = $1 and status = 'waiting'
    union all (select id from session where organization_id = $1 and status = 'failed'
      and created_at > now() - interval '${failureDays} days' order by created_at desc, id desc limit ${failuresAtMost})
    union all select session_id from pull_request where organization_id = $1 and state = 'open' and (mergeable = false
      or review = 'changesRequested' or (checks ->> 'sha' = head_sha and checks -> 'failed' <> '[]'))`,
  review: `select session_id from pull_request where organization_id = $1 and state = 'open' and mergeable is distinct from false`,
};

/**
 * The WHERE conditions of a list of sessions, without the words of a search. `bind` adds a value and returns its
 * placeholder.
 * @param rows whether `session` is the table, or what the index of words found, which has fewer columns
 * @throws InvalidInputError if the cursor is malformed
 */
export function conditionsOf(
  organizationId: string,
  { cursor, status, automationId, requestedBy, repositoryId, needs }: SessionListQuery,
  rows: "table" | "found" = "table",
) {
  const after = readCursor(cursor);
  const values: unknown[] = [organizationId];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const conditions = ["session.organization_id = $1"];
  if (status !== undefined) conditions.push(hasStatus([status].flat(), bind));
  if (needs !== undefined) conditions.push(`session.id in (${idsOf[needs]})`);
  if (needs === "review") conditions.push("session.status = 'completed'");
  if (repositoryId !== undefined) {
    const id = bind(repositoryId);
    conditions.push(
      `exists (select from session_repository part where part.session_id = session.id and part.repository_id = ${id})`,
    );
  }
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

/**
 * Condition: a session of the organization `$1` has one of these statuses. Few sessions have one that is not final, and an index of
 * their own; most sessions have a final one, so that a scan of the list finds them soon.
 */
function hasStatus(statuses: readonly SessionStatus[], bind: (value: unknown) => string): string {
  const [only, ...more] = statuses;
  if (more.length === 0) return `session.status = ${bind(only)}`;
  if (statuses.some(isFinal)) return `session.status = any(${bind(statuses)})`;
  const each = statuses.map((one) => `select id from session where organization_id = $1 and status = ${bind(one)}`);
  return `session.id in (${each.join(" union all ")})`;
}
