import type { Database, Queryable } from "../../database/database.ts";
import { approvalRulesSchema, type ApprovalRules } from "../../domain/repositories/approval.ts";
import { conversationSchema } from "../../domain/conversations/conversation.ts";
import type { LoopFacts, OtherPullRequest } from "../../domain/conversations/section.ts";

// Our section of each pull request's text: when it is due, and its hash. `move_session` and what a conversation
// decides make it due.

/** A pull request whose section is due, and which no other worker edits until the lease is over. */
export interface DueSection {
  readonly id: string;
  readonly organizationId: string;
  readonly sessionId: string;
  readonly repositoryId: string;
  readonly number: number;
  /** How often in a row it could not be written. */
  readonly attempts: number;
  /** Hash of what was written last; null: nothing was. */
  readonly told: string | null;
  /** Who may approve it; null: the forge does not say. */
  readonly approval: ApprovalRules | null;
  /** Name of the person in whose name it was opened; null if none. */
  readonly openedBy: string | null;
  /** When the lease ends. It is the fence: under a lease that another took over nothing changes. */
  readonly claimedUntil: string;
}

/**
 * Claims open pull requests whose section is due, the longest waiting first. Nobody else gets them until the lease is over.
 * @param busy ids of organizations of which no more are wanted now
 */
export async function claimDueSections(
  queryable: Queryable,
  {
    limit,
    leaseMs,
    busy = [],
  }: { readonly limit: number; readonly leaseMs: number; readonly busy?: readonly string[] },
): Promise<DueSection[]> {
  const { rows } = await queryable.query<DueSection>(
    `update pull_request set section_due_at = lease.until, editing_until = lease.until
     from (select clock_timestamp() + $2 * interval '1 millisecond' as until) lease
     where id in (select id from pull_request where section_due_at <= now() and (editing_until is null or editing_until <= now())
       and organization_id <> all($3::uuid[]) order by section_due_at limit $1 for update skip locked)
     returning id, organization_id as "organizationId", session_id as "sessionId", repository_id as "repositoryId", number,
       section_attempts as attempts, section_told as told, approval,
       (select name from user_account where user_account.id = opened_by) as "openedBy", section_due_at::text as "claimedUntil"`,
    [limit, leaseMs, busy],
  );
  return rows.map((row) => ({ ...row, approval: approvalRulesSchema.nullable().parse(row.approval) }));
}

/**
 * Ends a claim. A section that became due again meanwhile stays due. If the lease ended and another worker edits the
 * text, nothing changes, and the section stays due.
 * @param told hash of what the section says now; null: as before
 */
export async function settleSection(
  queryable: Queryable,
  { id, claimedUntil }: Pick<DueSection, "id" | "claimedUntil">,
  told: string | null,
): Promise<void> {
  await queryable.query(
    `update pull_request set editing_until = null, section_attempts = 0, section_told = coalesce($3, section_told),
       section_due_at = case when section_due_at <> $2::timestamptz then section_due_at end
     where id = $1 and editing_until = $2::timestamptz`,
    [id, claimedUntil, told],
  );
}

/** Ends a claim without having written the section, see `settleSection`. @param pauseMs until it is tried again */
export async function putOffSection(
  queryable: Queryable,
  { id, claimedUntil }: Pick<DueSection, "id" | "claimedUntil">,
  pauseMs: number,
): Promise<void> {
  await queryable.query(
    `update pull_request set editing_until = null, section_attempts = section_attempts + 1,
       section_due_at = clock_timestamp() + $3 * interval '1 millisecond'
     where id = $1 and editing_until = $2::timestamptz`,
    [id, claimedUntil, pauseMs],
  );
}

/** Exclusive right to edit a pull request's text, until the lease is over. */
export interface Editing {
  /** Null: the pull request is not recorded, so no other worker edits it. */
  readonly id: string | null;
  /** When the lease ends. It is the fence. */
  readonly until: string | null;
}

/**
 * Takes the exclusive right to edit a pull request's text until the lease is over or `endEditing` is called.
 * @returns null if another worker has it now
 */
export async function beginEditing(
  database: Database,
  place: { readonly organizationId: string; readonly repositoryId: string; readonly number: number },
  leaseMs: number,
): Promise<Editing | null> {
  const { rows } = await database.pool.query<Editing & { readonly isHeld: boolean }>(
    `with held as (
       update pull_request set editing_until = clock_timestamp() + $4 * interval '1 millisecond'
       where organization_id = $1 and repository_id = $2 and number = $3
         and (editing_until is null or editing_until <= clock_timestamp()) returning id, editing_until::text as until)
     select held.id, held.until, held.id is not null or not exists (
       select from pull_request where organization_id = $1 and repository_id = $2 and number = $3) as "isHeld"
     from (select) nothing left join held on true`,
    [place.organizationId, place.repositoryId, place.number, leaseMs],
  );
  const [row] = rows;
  return row?.isHeld === true ? { id: row.id, until: row.until } : null;
}

/** Gives up the right to edit. If the lease ended and another worker took one, that stays. */
export async function endEditing(database: Database, { id, until }: Editing): Promise<void> {
  await database.pool.query(
    "update pull_request set editing_until = null where id = $1 and editing_until = $2::timestamptz",
    [id, until],
  );
}

/** The pull requests of a session in its other repositories. @param repositoryId the one whose others are asked for */
export async function otherPullRequests(
  queryable: Queryable,
  { sessionId, repositoryId }: { readonly sessionId: string; readonly repositoryId: string },
): Promise<OtherPullRequest[]> {
  const { rows } = await queryable.query<OtherPullRequest>(
    `select repository.name, opened.number, opened.url
     from pull_request opened join repository on repository.id = opened.repository_id
       left join session_repository part on part.session_id = opened.session_id and part.repository_id = opened.repository_id
     where opened.session_id = $1 and opened.repository_id <> $2 order by part.position, opened.number`,
    [sessionId, repositoryId],
  );
  return rows;
}

/** The section's facts of the feedback loop; null if the session is gone. */
export async function readLoop(
  queryable: Queryable,
  { organizationId, sessionId, repositoryId, number }: DueSection,
): Promise<Omit<LoopFacts, "limits"> | null> {
  const { rows } = await queryable.query<
    Omit<LoopFacts, "limits" | "conversation"> & { readonly conversation: unknown }
  >(
    `select session.status, session_repository.pushed_sha as "pushedSha", messages.*, conversation.state as conversation
     from session
       left join session_repository on session_repository.session_id = session.id and session_repository.repository_id = $3
       left join conversation on conversation.organization_id = $2 and conversation.repository_id = $3
         and conversation.kind = 'pullRequest' and conversation.number = $4,
       lateral (select count(*) filter (where status = 'done')::integer as "followUps",
           count(*) filter (where status <> 'done') > 0 as "isAsked"
         from message where session_id = session.id and position > 1) as messages
     where session.id = $1 limit 1`,
    [sessionId, organizationId, repositoryId, number],
  );
  const [row] = rows;
  if (row === undefined) return null;
  return { ...row, conversation: row.conversation === null ? null : conversationSchema.parse(row.conversation) };
}
