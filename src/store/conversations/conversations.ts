import { createHash } from "node:crypto";
import type { Queryable } from "../../database/database.ts";
import type { RunEnd } from "../../domain/conversations/answers.ts";
import {
  conversationSchema,
  dueAt,
  newConversation,
  type Conversation,
  type ConversationSubject,
} from "../../domain/conversations/conversation.ts";
import type { Facts } from "../../domain/conversations/facts.ts";
import type { Where } from "../../domain/conversations/happening.ts";
import { storable, storableJson } from "../../domain/fields/text.ts";

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

/** What the database knows of a conversation beside its own state. */
export type KnownFacts = Pick<Facts, "isTaken" | "isOwnCommit" | "pullRequest" | "session" | "spentUsd">;

/** Reads what deciding has to know. @param about the key of what happened, and the commit that it is about */
export async function readFacts(
  transaction: Queryable,
  { id, organizationId, repositoryId, subject, sessionId }: LockedConversation,
  about: { readonly key: string | null; readonly sha: string | null },
): Promise<KnownFacts> {
  const { rows } = await transaction.query<{
    isTaken: boolean;
    isOwnCommit: boolean;
    pullRequest: KnownFacts["pullRequest"];
    session: KnownFacts["session"];
    spentUsd: number;
  }>(
    `select exists (select from conversation_item where conversation_id = $1 and key = $2) as "isTaken",
       exists (select from session_repository where session_id = $3 and pushed_sha = $4)
         or exists (select from session_commit where session_id = $3 and sha = $4) as "isOwnCommit",
       (select state from pull_request where organization_id = $5 and repository_id = $6 and number = $7 and $8 = 'pullRequest'
         order by created_at desc limit 1) as "pullRequest",
       (select jsonb_build_object('status', status,
           'pushedSha', (select pushed_sha from session_repository where session_id = $3 and repository_id = $6 limit 1),
           'pushingSha', (select pushing_sha from session_repository where session_id = $3 and repository_id = $6 limit 1),
           'isOver', exists (select from pull_request where session_id = $3)
             and not exists (select from pull_request where session_id = $3 and state = 'open'))
         from session where id = $3) as session,
       greatest(0, (select coalesce(sum(spent_usd), 0) from session where organization_id = $5 and id in (
           select $3::uuid union select run_id from conversation_item where conversation_id = $1 and run_id is not null
           union select job.session_id from conversation_item item join job on job.id = item.run_id
             where item.conversation_id = $1 and item.run_id is not null))
         - coalesce((select spent_before_usd from conversation where id = $1), 0))::float8 as "spentUsd"`,
    [id, keyOfItem(about.key), sessionId, about.sha, organizationId, repositoryId, subject.number, subject.kind],
  );
  const [facts] = rows;
  if (facts === undefined) throw new Error("the facts of a conversation were not returned");
  return facts;
}

/** Writes what a decision made of a conversation. */
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
     select run.id, $1, (select session_id from message where message.id = run.id),
       -- A job that a policy filtered has ended before it is noted here.
       case when exists (select from job where job.id = run.id and job.status in ('cancelled', 'failed')) then now()
         else ${lookedAtAgain("run.id")} end
     from unnest($2::uuid[]) as run (id) on conflict (id) do nothing`,
    [id, runs],
  );
  // What the pull request's text says of it: src/store/repositories/pull-request-sections.ts.
  await transaction.query(
    `update pull_request set section_due_at = now() from conversation
     where conversation.id = $1 and conversation.kind = 'pullRequest' and pull_request.organization_id = conversation.organization_id
       and pull_request.repository_id = conversation.repository_id and pull_request.number = conversation.number
       and pull_request.state = 'open'`,
    [id],
  );
}

/**
 * When a run is looked at if nothing tells of it. The end of a session does (move_session); of a job that ended without one, of a
 * session that was deleted, nothing does.
 */
const lookedAtAgain = (id: string): string => `now() + case
  when exists (select from job where job.id = ${id} and job.session_id is null) then interval '5 seconds'
  else interval '10 minutes' end`;

/** What was taken up, and what came of it. */
export interface ConversationItem {
  readonly key: string;
  readonly eventId: string | null;
  readonly runId: string | null;
  readonly reason: string | null;
}

/** Notes that something was taken up. */
export async function takeItem(
  transaction: Queryable,
  { id, organizationId }: { readonly id: string; readonly organizationId: string },
  { key, eventId, runId, reason }: ConversationItem,
): Promise<void> {
  await transaction.query(
    `insert into conversation_item (organization_id, conversation_id, key, event_id, run_id, reason)
     values ($1, $2, $3, $4, $5, $6) on conflict (conversation_id, key) do nothing`,
    [organizationId, id, keyOfItem(key), eventId, runId, reason === null ? null : storable(reason)],
  );
}

/** What came of an event that was decided before, as if its worker had died between; null: nothing that was kept. */
export async function decidedBefore(
  queryable: Queryable,
  conversationId: string | null,
  { key, eventId }: { readonly key: string | null; readonly eventId: string },
): Promise<{ readonly reason: string | null } | null> {
  if (conversationId === null || key === null) return null;
  const { rows } = await queryable.query<{ reason: string | null }>(
    "select reason from conversation_item where conversation_id = $1 and key = $2 and event_id = $3",
    [conversationId, keyOfItem(key), eventId],
  );
  return rows[0] ?? null;
}

const longestKey = 200;

/** Some keys contain what somebody wrote. */
function keyOfItem(key: string | null): string | null {
  if (key === null || key.length <= longestKey) return key === null ? null : storable(key);
  return `sha256:${createHash("sha256").update(key).digest("base64url")}`;
}

const runStatuses = { completed: "completed", failed: "failed", cancelled: "cancelled" } as const;

interface EndRow {
  readonly id: string;
  readonly status: string;
  readonly messageStatus: string | null;
  readonly isSettled: boolean;
  readonly answer: string | null;
  readonly changed: boolean | null;
  readonly sessionId: string | null;
  readonly pushedSha: string | null;
  readonly pushedWithIt: string | null;
  /** Whether the pull request of what was pushed with it is there. */
  readonly isDelivered: boolean;
  readonly pullRequestUrl: string | null;
  readonly summary: string | null;
  readonly reason: string | null;
}

/**
 * How runs ended; those that have not are missing. What is gone counts as cancelled. Several turns may end before their session does:
 * each has its own words and its own commit.
 */
export async function readEnds(
  queryable: Queryable,
  { repositoryId, state }: Pick<LockedConversation, "repositoryId" | "state">,
  urls: { readonly commit: (sha: string) => string; readonly session: (id: string) => string },
): Promise<Map<string, RunEnd>> {
  const { rows } = await queryable.query<EndRow>(
    `select run.id, coalesce(session.status, case job.status when 'completed' then 'cancelled' else job.status end, 'cancelled') as status,
       message.status as "messageStatus", coalesce(message.position <= session.settled_messages, false) as "isSettled",
       message.answer, message.changed, message.pushed ->> part.position::text as "pushedWithIt",
       exists (select from pull_request where session_id = session.id and repository_id = $2
         and head_sha = message.pushed ->> part.position::text) as "isDelivered",
       session.id as "sessionId", part.pushed_sha as "pushedSha", session.summary,
       coalesce(session.failure ->> 'reason', job.error) as reason,
       (select url from pull_request where session_id = session.id and repository_id = $2 order by created_at desc limit 1) as "pullRequestUrl"
     from unnest($1::uuid[]) as run (id) left join job on job.id = run.id
     -- A session's first message has its id.
     left join message on message.id = coalesce(job.session_id, run.id)
     left join session on session.id = coalesce(message.session_id, job.session_id)
     left join session_repository part on part.session_id = session.id and part.repository_id = $2`,
    [state.runs.map(({ id }) => id), repositoryId],
  );
  return new Map(
    rows.flatMap((row): [string, RunEnd][] => {
      const end = endOf(row);
      if (end === null) return [];
      const { pullRequestUrl, reason, sessionId } = row;
      const commitUrl = end.pushedSha === null ? null : urls.commit(end.pushedSha);
      const sessionUrl = sessionId === null ? null : urls.session(sessionId);
      return [[row.id, { ...end, commitUrl, pullRequestUrl, reason, sessionUrl }]];
    }),
  );
}

function endOf(row: EndRow): Pick<RunEnd, "status" | "pushedSha" | "summary"> | null {
  const { messageStatus, isSettled, answer, changed, pushedSha, pushedWithIt, isDelivered, summary } = row;
  const status = runStatuses[row.status as keyof typeof runStatuses];
  const own = { pushedSha: changed === false ? null : pushedWithIt, summary: answer };
  if (messageStatus === "done" && answer !== null) {
    // Its work was delivered, whatever becomes of the turns after it.
    if (isSettled) return { status: "completed", ...own };
    // What failed is the work on another repository of the session.
    if (status === "failed") return { status: isDelivered ? "completed" : "undelivered", ...own };
    return status === undefined ? null : { status, ...own };
  }
  if (status === undefined) return null;
  if (status === "completed" && messageStatus !== null && messageStatus !== "done") return null;
  return { status, pushedSha, summary };
}

/** Conversations in which something is due, or a run may have ended that is not answered, the longest waiting first. */
export async function dueConversations(queryable: Queryable, limit: number): Promise<string[]> {
  const { rows } = await queryable.query<{ id: string }>(
    `select id from (
       (select id, due_at from conversation where due_at <= now() order by due_at limit $1)
       union all
       (select conversation_id, due_at from conversation_run where due_at <= now() order by due_at limit $1)) as due
     group by id order by min(due_at) limit $1`,
    [limit],
  );
  return rows.map(({ id }) => id);
}

/**
 * Notes that the runs of a conversation are looked at, which is before they are read: one that ends from here on is due again.
 * In no transaction with a decision, which holds what a session's move waits for.
 */
export async function lookAtRuns(queryable: Queryable, id: string): Promise<void> {
  await queryable.query(
    `update conversation_run set due_at = ${lookedAtAgain("conversation_run.id")} where conversation_id = $1 and due_at <= now()`,
    [id],
  );
}

/** Puts off a conversation that could not be looked at, so that it holds up no other. */
export async function putOff(queryable: Queryable, id: string, pauseMs: number): Promise<void> {
  await queryable.query(
    "update conversation set due_at = now() + $2 * interval '1 millisecond' where id = $1 and due_at <= now()",
    [id, pauseMs],
  );
  await queryable.query(
    `update conversation_run set due_at = now() + $2 * interval '1 millisecond'
     where conversation_id = $1 and (due_at <= now() or due_at > now() + $2 * interval '1 millisecond')`,
    [id, pauseMs],
  );
}
