import { randomUUID } from "node:crypto";
import type { Database } from "../../../src/database/database.ts";
import type { NewEvent } from "../../../src/domain/sessions/event.ts";
import type { SessionStatus } from "../../../src/domain/sessions/status.ts";
import { appendEvents } from "../../../src/store/sessions/events.ts";

/** A session as the pages show it, which no worker ran. */
export interface StoredSession {
  readonly title: string;
  readonly prompt?: string;
  readonly status: SessionStatus;
  readonly repositories?: readonly string[];
  /** How long ago it was asked for, in minutes; default 5. */
  readonly minutesAgo?: number;
  /** How long it worked, in minutes; default 2. */
  readonly minutes?: number;
  readonly agent?: string;
  readonly requestedBy?: string;
  readonly automationId?: string;
  readonly spentUsd?: number;
  readonly budgetUsd?: number;
  readonly failure?: { readonly code: string; readonly reason: string; readonly remedy: string };
  readonly waiting?: string;
  readonly retry?: { readonly reason: string; readonly code: string; readonly inMinutes: number };
  readonly pullRequest?: {
    readonly number: number;
    readonly state: "open" | "merged" | "closed";
    readonly mergeable?: boolean;
  };
  readonly events?: readonly NewEvent[];
  readonly patch?: string;
  readonly labels?: readonly string[];
}

/**
 * Writes a session as it would be after work that takes no place: what runs has a lease of a year, and no worker looks at it.
 * @returns its id
 */
export async function storeSession(database: Database, organizationId: string, stored: StoredSession): Promise<string> {
  const { title, status, minutesAgo = 5, minutes = 2, failure, waiting, retry } = stored;
  const id = randomUUID();
  const isOver = status === "completed" || status === "failed" || status === "cancelled";
  const ran = isOver || status === "running" || status === "waiting";
  const leased = status === "running" || status === "waiting";
  await database.pool.query(
    `insert into session (id, organization_id, title, description, prompt, status, agent, branch_name, priority, automation_id,
       requested_by, sandboxed, created_at, queued_at, started_at, finished_at, failure, waiting, retry, retry_at, spent_usd, budget_usd,
       worker, lease_until, summary, target_branch)
     select $1, $2, $3, $4, $4, $5, $6, $7, 5, $8, $9, true, at, case when $5 <> 'draft' then at end,
       case when $10 then at + interval '2 seconds' end, case when $11 then at + $12 * interval '1 minute' end,
       $13::jsonb, $14::jsonb, $15::jsonb, now() + $16 * interval '1 minute', $17, $18,
       case when $19 then 'elsewhere' end, case when $19 then now() + interval '1 year' end, $20, 'main'
     from (select now() - $21 * interval '1 minute' as at) as asked`,
    [
      id,
      organizationId,
      title,
      stored.prompt ?? title,
      status,
      stored.agent ?? "opencode:anthropic/claude-sonnet-4-6",
      `offstage/work-${id.slice(0, 8)}`,
      stored.automationId ?? null,
      stored.requestedBy ?? null,
      ran,
      isOver,
      minutes,
      failure === undefined ? null : JSON.stringify({ ...failure, retryable: true }),
      waiting === undefined ? null : JSON.stringify({ reason: "budget", text: waiting }),
      retry === undefined ? null : JSON.stringify({ reason: retry.reason, code: retry.code, attempt: 1 }),
      retry?.inMinutes ?? null,
      stored.spentUsd ?? 0,
      stored.budgetUsd ?? null,
      leased,
      isOver ? title : null,
      minutesAgo,
    ],
  );
  for (const [position, repositoryId] of (stored.repositories ?? []).entries()) {
    await database.pool.query(
      `insert into session_repository (session_id, repository_id, position, directory, patch, base_sha, head_sha)
       values ($1, $2, $3, $4, $5, 'aaaaaaaa', 'bbbbbbbb')`,
      [id, repositoryId, position + 1, `part-${position + 1}`, position === 0 ? (stored.patch ?? null) : null],
    );
  }
  if (stored.pullRequest !== undefined) await storePullRequest(database, organizationId, id, stored);
  await database.pool.query(
    `insert into session_label (session_id, organization_id, label, session_created_at)
     select id, organization_id, unnest($2::text[]), created_at from session where id = $1`,
    [id, stored.labels ?? []],
  );
  await storeEvents(database, id, stored.events ?? []);
  // As if each had come a while after the one before.
  await database.pool.query(
    `update event set created_at = started_at + seq * (coalesce(finished_at, now()) - started_at) / (last_event + 1)
     from session where session.id = $1 and event.session_id = $1 and started_at is not null`,
    [id],
  );
  return id;
}

async function storePullRequest(
  database: Database,
  organizationId: string,
  sessionId: string,
  { repositories = [], pullRequest }: StoredSession,
): Promise<void> {
  await database.pool.query(
    `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state, mergeable)
     select $1, $2, session.id, repository.id, session.branch_name, 'main', $5::integer, repository.url || '/pull/' || $5::integer, $6, $7::boolean
     from session, repository where session.id = $3 and repository.id = $4`,
    [
      randomUUID(),
      organizationId,
      sessionId,
      repositories[0],
      pullRequest?.number,
      pullRequest?.state,
      pullRequest?.mergeable ?? null,
    ],
  );
}

/** Adds events to a session, many at once. */
export async function storeEvents(database: Database, sessionId: string, events: readonly NewEvent[]): Promise<void> {
  for (let from = 0; from < events.length; from += 1_000) {
    await appendEvents(database.pool, sessionId, events.slice(from, from + 1_000));
  }
}
