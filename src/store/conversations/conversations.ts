import type { Queryable } from "../../database/database.ts";
import {
  conversationSchema,
  dueAt,
  newConversation,
  type Conversation,
  type ConversationSubject,
} from "../../domain/conversations/conversation.ts";
import type { Where } from "../../domain/conversations/happening.ts";
import { storableJson } from "../../domain/fields/text.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { lookedAtAgain } from "./due.ts";

/** Which conversation. */
export interface ConversationPlace {
  readonly organizationId: string;
  readonly repositoryId: string;
  readonly subject: ConversationSubject;
}

/** A conversation whose row the transaction has locked; `id` is null if there is no row yet. */
export interface LockedConversation extends ConversationPlace {
  readonly id: string | null;
  readonly state: Conversation;
  /** The session that works on it: that of the pull request, or the newest of the issue. */
  readonly sessionId: string | null;
}

/**
 * The conversation that an event belongs to: what it names, or the pull request of a session that has the branch or the commit.
 * @returns null if it is about no conversation
 */
export async function findPlace(
  queryable: Queryable,
  { organizationId, repositoryId }: Pick<ConversationPlace, "organizationId" | "repositoryId">,
  where: Where,
): Promise<ConversationPlace | null> {
  const of = (subject: ConversationSubject): ConversationPlace => ({ organizationId, repositoryId, subject });
  if ("number" in where) return of(where);
  const isChecks = where.kind === "checks";
  const { rows } = await queryable.query<{ number: number }>(
    // Each by its own index: with an "or" of them all pull requests of the organization are read. The few sessions that have a
    // commit are read first, or the planner may begin with all pull requests of the repository's sessions.
    `with made as materialized (select session_id, position from session_commit where sha = $5)
     select number from (
       select number, state, created_at from pull_request where organization_id = $1 and head = $3 and repository_id = $2
       union all
       select number, state, created_at from pull_request
         where organization_id = $1 and number = any($4::integer[]) and repository_id = $2
       union all
       select opened.number, opened.state, opened.created_at from session_repository part
         join pull_request opened on opened.session_id = part.session_id
         where part.pushed_sha = $5 and part.repository_id = $2 and opened.repository_id = $2 and opened.organization_id = $1
       union all
       select opened.number, opened.state, opened.created_at from made
         join session_repository part using (session_id, position)
         join pull_request opened on opened.session_id = part.session_id
         where part.repository_id = $2 and opened.repository_id = $2 and opened.organization_id = $1
     ) as found order by state = 'open' desc, created_at desc limit 1`,
    [organizationId, repositoryId, where.branch, isChecks ? where.numbers : [], isChecks ? where.sha : null],
  );
  return rows[0] === undefined ? null : of({ kind: "pullRequest", number: rows[0].number });
}

/** Whether a session that works now has begun to push a commit: its pull request is there soon. */
export async function isBeingPushed(
  queryable: Queryable,
  { organizationId, repositoryId }: Pick<ConversationPlace, "organizationId" | "repositoryId">,
  sha: string,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    `select from session_commit made join session_repository part using (session_id, position)
       join session on session.id = made.session_id
     where made.sha = $3 and part.repository_id = $2 and session.organization_id = $1
       and part.pushing_sha = $3 and session.status in ('queued', 'running', 'waiting') limit 1`,
    [organizationId, repositoryId, sha],
  );
  return rowCount === 1;
}

/**
 * Whether a session that works now has opened a pull request that is not recorded yet.
 * @param sessionId as the pull request's text says it: it may be anything
 */
export async function isBeingOpened(
  queryable: Queryable,
  { organizationId, repositoryId, subject }: ConversationPlace,
  sessionId: string,
): Promise<boolean> {
  if (subject.kind !== "pullRequest" || !isUuid(sessionId)) return false;
  const { rowCount } = await queryable.query(
    `select from session join session_repository part on part.session_id = session.id and part.repository_id = $2
     where session.id = $4 and session.organization_id = $1 and session.status in ('queued', 'running', 'waiting')
       -- A session has at most one for each repository; any other that names the session in its text is not its own.
       and not exists (select from pull_request where session_id = session.id and repository_id = $2 and state = 'open')
       and not exists (select from pull_request where organization_id = $1 and repository_id = $2 and number = $3) limit 1`,
    [organizationId, repositoryId, subject.number, sessionId],
  );
  return rowCount === 1;
}

/** A conversation by its row, as it is without a lock; null if it is gone. */
export async function readConversation(
  queryable: Queryable,
  id: string,
): Promise<(ConversationPlace & { readonly state: Conversation }) | null> {
  const { rows } = await queryable.query<
    { organizationId: string; repositoryId: string; state: unknown } & ConversationSubject
  >(
    `select organization_id as "organizationId", repository_id as "repositoryId", kind, number, state
     from conversation where id = $1`,
    [id],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { organizationId, repositoryId, kind, number, state } = row;
  return { organizationId, repositoryId, subject: { kind, number }, state: conversationSchema.parse(state) };
}

/** Locks a conversation until the transaction ends. @param isKept whether there has to be a row from here on */
export async function lockConversation(
  transaction: Queryable,
  place: ConversationPlace,
  isKept: boolean,
): Promise<LockedConversation> {
  const { organizationId, repositoryId, subject } = place;
  const values = [organizationId, repositoryId, subject.kind, subject.number];
  if (isKept) {
    await transaction.query(
      `insert into conversation (organization_id, repository_id, kind, number, state, spent_before_usd)
       values ($1, $2, $3, $4, $5, coalesce((select spent_usd from session where $3 = 'pullRequest' and id = (
         select session_id from pull_request where repository_id = $2 and number = $4 order by created_at desc limit 1)), 0))
       on conflict (organization_id, repository_id, kind, number) do nothing`,
      [...values, storableJson(newConversation)],
    );
  }
  const { rows } = await transaction.query<{ id: string; state: unknown; sessionId: string | null }>(
    `select id, state, session_id as "sessionId" from conversation
     where organization_id = $1 and repository_id = $2 and kind = $3 and number = $4 for no key update`,
    values,
  );
  const [row] = rows;
  const own = row?.sessionId ?? null;
  const sessionId = subject.kind === "issue" ? own : await sessionOfPullRequest(transaction, place);
  const state = row === undefined ? newConversation : conversationSchema.parse(row.state);
  return { ...place, id: row?.id ?? null, state, sessionId };
}

async function sessionOfPullRequest(
  queryable: Queryable,
  { organizationId, repositoryId, subject }: ConversationPlace,
): Promise<string | null> {
  const { rows } = await queryable.query<{ id: string }>(
    `select session_id as id from pull_request where organization_id = $1 and repository_id = $2 and number = $3
     order by created_at desc limit 1`,
    [organizationId, repositoryId, subject.number],
  );
  return rows[0]?.id ?? null;
}

/** Writes what a decision made of a conversation. What it locks of an automation is locked after it. */
export async function saveConversation(
  transaction: Queryable,
  id: string,
  state: Conversation,
  { startedSession }: { readonly startedSession: string | null },
): Promise<void> {
  const due = dueAt(state);
  await transaction.query(
    `update conversation set state = $2, due_at = to_timestamp($3::float8 / 1000),
       session_id = coalesce($4, session_id), updated_at = now() where id = $1`,
    [id, storableJson(state), due, startedSession],
  );
  // Last: the move of a session, which marks these, waits for what this transaction holds, and never the other way round.
  const runs = state.runs.map((run) => run.id);
  await transaction.query("delete from conversation_run where conversation_id = $1 and id <> all($2::uuid[])", [
    id,
    runs,
  ]);
  await transaction.query(
    `insert into conversation_run (id, conversation_id, session_id, due_at)
     select run.id, $1, (select session_id from message where message.id = run.id), ${lookedAtAgain("run.id")}
     from unnest($2::uuid[]) as run (id) on conflict (id) do nothing`,
    [id, runs],
  );
  // The pull request's section about it: src/store/repositories/pull-request-sections.ts.
  await transaction.query(
    `update pull_request set section_due_at = now() from conversation
     where conversation.id = $1 and conversation.kind = 'pullRequest' and pull_request.organization_id = conversation.organization_id
       and pull_request.repository_id = conversation.repository_id and pull_request.number = conversation.number
       and pull_request.state = 'open'`,
    [id],
  );
}

/** Notes that a run of a conversation, which was saved, has its job: one that a policy filtered has ended already. */
export async function noteStartedJob(transaction: Queryable, runId: string): Promise<void> {
  await transaction.query(
    `update conversation_run set due_at = case
       when exists (select from job where job.id = conversation_run.id and job.status in ('cancelled', 'failed')) then now()
       else ${lookedAtAgain("conversation_run.id")} end
     where id = $1`,
    [runId],
  );
}
