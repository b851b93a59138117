import type { Database, Queryable } from "../../database/database.ts";
import { storableJson } from "../../domain/fields/text.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { appendEvents } from "../sessions/events.ts";
import { lockSession } from "../sessions/transition.ts";
import { LeaseLostError, underClaim, type Claim } from "./lease.ts";

// What a worker writes and reads while it works on a session.

/**
 * Appends events to a session under a claim.
 * @throws LeaseLostError
 */
export async function appendClaimEvents(database: Database, claim: Claim, events: readonly NewEvent[]): Promise<void> {
  await underClaim(database, claim, (transaction) => appendEvents(transaction, claim.sessionId, events));
  database.notify("offstage_event", claim.sessionId);
}

/** A message that the agent must answer. */
export interface ClaimedMessage {
  readonly id: string;
  readonly position: number;
  readonly text: string;
  /** The message was given to the agent in an earlier attempt that did not finish the turn. */
  readonly interrupted: boolean;
}

/**
 * What is known of the first message that is not done, which stays as it is; null if all are done.
 */
export async function upcomingMessage(
  database: Database,
  { sessionId }: Claim,
): Promise<{ readonly interrupted: boolean; readonly mergesTarget: boolean } | null> {
  const { rows } = await database.pool.query<{ interrupted: boolean; mergesTarget: boolean }>(
    `select status = 'running' as interrupted, merges_target as "mergesTarget" from message
     where session_id = $1 and status <> 'done' order by position limit 1`,
    [sessionId],
  );
  return rows[0] ?? null;
}

/**
 * The first message that is not done, marked as running; null if all are done.
 * @throws LeaseLostError
 */
export function nextMessage(database: Database, claim: Claim): Promise<ClaimedMessage | null> {
  return underClaim(database, claim, async (transaction) => {
    const { rows } = await transaction.query<ClaimedMessage>(
      `select id, position, text, status = 'running' as interrupted from message
       where session_id = $1 and status <> 'done' order by position limit 1`,
      [claim.sessionId],
    );
    const [message] = rows;
    if (message === undefined) return null;
    await transaction.query("update message set status = 'running' where id = $1", [message.id]);
    return message;
  });
}

/**
 * Ends a turn. The agent's `answer` becomes the session's summary.
 * @param isKept whether a checkpoint has all changes of the turn
 * @param isRepeated whether the message had been answered before, and the work was lost: then failures are still counted from
 *   before, or a session could repeat its turn for ever; false if omitted
 * @throws LeaseLostError
 */
export function completeMessage(
  database: Database,
  claim: Claim,
  messageId: string,
  {
    answer,
    isKept,
    isRepeated = false,
  }: { readonly answer: string; readonly isKept: boolean; readonly isRepeated?: boolean },
): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update message set status = 'done', kept = $2 where id = $1", [messageId, isKept]);
    await transaction.query("update session set retry = case when $3 then retry end, summary = $2 where id = $1", [
      claim.sessionId,
      answer,
      isRepeated,
    ]);
  });
}

/**
 * Reopens answered messages whose changes were lost, because their worker died before it saved them.
 * @param lost "not kept": messages that no checkpoint includes; "all": every message that is not settled, if there is
 * no checkpoint
 * @returns how many messages
 * @throws LeaseLostError
 */
export function reopenMessages(database: Database, claim: Claim, lost: "not kept" | "all"): Promise<number> {
  return underClaim(database, claim, async (transaction) => {
    const { rowCount } = await transaction.query(
      `update message set status = 'running' from session
       where session.id = message.session_id and session_id = $1 and message.status = 'done'
         and position > settled_messages and (not kept or $2)`,
      [claim.sessionId, lost === "all"],
    );
    return rowCount ?? 0;
  });
}

/**
 * Saves the harness's own session id, so that another attempt can resume the conversation.
 * @throws LeaseLostError
 */
export function saveHarness(
  database: Database,
  claim: Claim,
  harness: { readonly provider: string; readonly sessionId: string },
): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update session set harness = $2 where id = $1", [claim.sessionId, storableJson(harness)]);
  });
}

/**
 * Records that this worker's disk now has the session's latest folders; copies on other workers are outdated.
 * @throws LeaseLostError
 */
export function saveWorkspaceWorker(database: Database, claim: Claim, worker: string): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update session set workspace_worker = $2 where id = $1", [claim.sessionId, worker]);
  });
}

/** New values for a repository of a session. `patch` is a unified diff. */
export interface RepositoryProgress {
  readonly baseSha?: string;
  readonly headSha?: string;
  readonly pushedSha?: string;
  readonly patch?: string;
  readonly patchTruncated?: boolean;
}

/**
 * Updates one repository of the session; undefined fields stay as they are.
 * @param position index of the repository in the session
 * @throws LeaseLostError
 */
export function saveRepository(
  database: Database,
  claim: Claim,
  position: number,
  progress: RepositoryProgress,
): Promise<void> {
  return underClaim(database, claim, (transaction) => updateRepository(transaction, claim, position, progress));
}

/**
 * Saves the diff of an attempt that ended without completing, also if its session was cancelled meanwhile.
 * @param position index of the repository in the session
 * @throws LeaseLostError if another attempt has begun
 */
export function saveDiffOfEnded(
  database: Database,
  claim: Claim,
  position: number,
  diff: Pick<RepositoryProgress, "headSha" | "patch" | "patchTruncated">,
): Promise<void> {
  return underAttempt(database, claim, (transaction) => updateRepository(transaction, claim, position, diff));
}

/**
 * Runs a write of the session's last attempt, whether or not the session is over.
 * @throws LeaseLostError if another attempt has begun
 */
function underAttempt(
  database: Database,
  claim: Claim,
  write: (transaction: Queryable) => Promise<void>,
): Promise<void> {
  return database.transaction(async (transaction) => {
    const { attempt } = await lockSession(transaction, claim.organizationId, claim.sessionId);
    if (attempt !== claim.attempt) throw new LeaseLostError(`another attempt at session ${claim.sessionId} has begun`);
    await write(transaction);
  });
}

async function updateRepository(
  transaction: Queryable,
  { sessionId }: Claim,
  position: number,
  { baseSha, headSha, pushedSha, patch, patchTruncated }: RepositoryProgress,
): Promise<void> {
  await transaction.query(
    `update session_repository set base_sha = coalesce($3, base_sha), head_sha = coalesce($4, head_sha),
       pushed_sha = coalesce($5, pushed_sha), patch = coalesce($6, patch),
       patch_truncated = coalesce($7, patch_truncated)
     where session_id = $1 and position = $2`,
    // PostgreSQL's text can't hold NUL. A diff that contains one is of a binary file.
    [sessionId, position, baseSha, headSha, pushedSha, patch?.replaceAll("\0", "\u2400"), patchTruncated],
  );
}

/** A pull request that a session opened or found. `head` and `target` are branch names. */
export interface OpenedPullRequest {
  readonly repositoryId: string;
  readonly head: string;
  readonly target: string;
  /** The pushed commit for which it was opened or found. */
  readonly headSha: string;
  readonly number: number;
  readonly url: string;
  readonly state: "open" | "merged" | "closed";
}

/**
 * Records that a pull request is about to be asked for, so that the next attempt knows that there may be one if this one does not
 * learn the answer.
 * @param position index of the repository in the session
 * @param sha the pushed commit for which it is
 * @throws LeaseLostError
 */
export function saveAsked(database: Database, claim: Claim, position: number, sha: string): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query(
      `update session_repository set asked_sha = $3, asked_at = clock_timestamp()
       where session_id = $1 and position = $2`,
      [claim.sessionId, position, sha],
    );
  });
}

/**
 * Saves a pull request; there is one row for each (repository, head, target). A new pull request replaces a closed
 * one, and its state is tracked as long as that of a new row. One that is new here and not open any more is saved as open: it is
 * for the caller to close it with `closePullRequest`, which tells of it.
 * @returns the row's id, and whether it was unknown before
 * @throws LeaseLostError
 */
export function savePullRequest(
  database: Database,
  claim: Claim,
  opened: OpenedPullRequest,
): Promise<{ readonly id: string; readonly isNew: boolean }> {
  return underClaim(database, claim, async (transaction) => {
    const { rows } = await transaction.query<{ id: string; isNew: boolean }>(
      `with before as (
         select number from pull_request where repository_id = $4 and head = $5 and target = $6),
       saved as (
         insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state,
           head_sha)
         values ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $10)
         on conflict (repository_id, head, target) do update
           set number = excluded.number, url = excluded.url, head_sha = excluded.head_sha,
             state = case when pull_request.number = excluded.number and pull_request.state = $9
               then pull_request.state else 'open' end,
             -- What the forge said was of another commit, or of another pull request.
             mergeable = null, mergeable_asked = 0, checked_at = '-infinity',
             session_id = case when pull_request.number = excluded.number then pull_request.session_id
               else excluded.session_id end,
             created_at = case when pull_request.number = excluded.number then pull_request.created_at else now() end
         returning pull_request as changed, id, (select number from before) is distinct from number as is_new)
       select id, is_new as "isNew", case when is_new then enqueue_pull_request_webhooks(changed, 'opened') end from saved`,
      [
        crypto.randomUUID(),
        claim.organizationId,
        claim.sessionId,
        opened.repositoryId,
        opened.head,
        opened.target,
        opened.number,
        opened.url,
        opened.state,
        opened.headSha,
      ],
    );
    const [row] = rows;
    if (row === undefined) throw new Error("the pull request was not returned");
    // What was asked for is known: nothing is waited for when a follow-up asks again.
    await transaction.query(
      "update session_repository set asked_sha = null, asked_at = null where session_id = $1 and repository_id = $2",
      [claim.sessionId, opened.repositoryId],
    );
    return row;
  });
}

/** What earlier exports and pushes recorded of a session's work on one repository. */
export interface RecordedWork {
  /** Index of the repository in the session. */
  readonly position: number;
  /** Hashes of the session's own commits, the pushed one included: it may be a merge of the session's work with the branch. */
  readonly commits: ReadonlySet<string>;
  /** The commit of the last push; null if nothing was pushed. */
  readonly pushedSha: string | null;
  /** Whether a pull request was opened or found for that commit. */
  readonly hasPullRequest: boolean;
  /** Time since a pull request was last asked for, in ms; null if none was. */
  readonly askedMsAgo: number | null;
}

/** Reads the recorded work of a session, in the order of its repositories. */
export async function recordedWork(
  database: Database,
  { sessionId, branchName }: Claim & { readonly branchName: string },
): Promise<RecordedWork[]> {
  const { rows } = await database.pool.query<Omit<RecordedWork, "commits"> & { readonly commits: readonly string[] }>(
    `select position, pushed_sha as "pushedSha",
       array(select sha from session_commit where session_commit.session_id = session_repository.session_id
         and session_commit.position = session_repository.position) as commits,
       exists (select from pull_request where pull_request.repository_id = session_repository.repository_id
         and head = $2 and (head_sha = pushed_sha or (head_sha is null and pull_request.session_id = $1)))
         and pushed_sha is not null as "hasPullRequest",
       (extract(epoch from clock_timestamp() - asked_at) * 1000)::float8 as "askedMsAgo"
     from session_repository where session_id = $1 order by position`,
    [sessionId, branchName],
  );
  return rows.map(({ commits, ...row }) => ({
    ...row,
    commits: new Set([...commits, ...(row.pushedSha === null ? [] : [row.pushedSha])]),
  }));
}

/** A commit of a session's work, as its event shows it. */
export type WorkCommit = Extract<NewEvent, { readonly type: "workspace.commit" }>["data"];

/**
 * Records commits that were exported, and emits an event for each that is new.
 * @param position index of the repository in the session
 * @param commits masked
 * @throws LeaseLostError
 */
export async function saveCommits(
  database: Database,
  claim: Claim,
  position: number,
  commits: readonly WorkCommit[],
): Promise<void> {
  await saveCommitsUnder(underClaim, database, claim, position, commits);
}

/**
 * As `saveCommits`, of an attempt that ended without completing, also if its session was cancelled meanwhile.
 * @throws LeaseLostError if another attempt has begun
 */
export async function saveCommitsOfEnded(
  database: Database,
  claim: Claim,
  position: number,
  commits: readonly WorkCommit[],
): Promise<void> {
  await saveCommitsUnder(underAttempt, database, claim, position, commits);
}

async function saveCommitsUnder(
  hold: typeof underAttempt,
  database: Database,
  claim: Claim,
  position: number,
  commits: readonly WorkCommit[],
): Promise<void> {
  if (commits.length === 0) return;
  await hold(database, claim, (transaction) => insertCommits(transaction, claim, position, commits));
  database.notify("offstage_event", claim.sessionId);
}

async function insertCommits(
  transaction: Queryable,
  claim: Claim,
  position: number,
  commits: readonly WorkCommit[],
): Promise<void> {
  const { rows } = await transaction.query<{ sha: string }>(
    `insert into session_commit (session_id, position, sha) select $1, $2, unnest($3::text[])
       on conflict do nothing returning sha`,
    [claim.sessionId, position, commits.map(({ sha }) => sha)],
  );
  const saved = new Set(rows.map(({ sha }) => sha));
  const fresh = commits.filter(({ sha }) => saved.has(sha));
  await appendEvents(
    transaction,
    claim.sessionId,
    fresh.map((data) => ({ type: "workspace.commit", data })),
  );
}

/** Limit in characters, beyond what any model reads. */
const transcriptLimit = 500_000;

/**
 * The messages and answers of earlier turns, for a harness that can't resume: only the newest part if they are very
 * long; empty if the agent has not answered yet.
 */
export async function transcript(
  database: Database,
  claim: Claim,
): Promise<{ from: "user" | "agent"; text: string }[]> {
  const { rows } = await database.pool.query<{ type: string; text: string; part: string | null }>(
    `with conversation as (
       select seq, type, data ->> 'text' as text, data ->> 'part' as part,
         sum(length(data ->> 'text')) over (order by seq desc) as after
       from event where session_id = $1 and type in ('message.user', 'agent.message')
         and (type <> 'message.user' or coalesce((select status from message
           where message.id = (event.data ->> 'messageId')::uuid), 'done') = 'done'))
     select type, text, part from conversation where after <= $2 order by seq`,
    [claim.sessionId, transcriptLimit],
  );
  const turns: { from: "user" | "agent"; text: string; part: string | null }[] = [];
  for (const { type, text, part } of rows) {
    const from = type === "message.user" ? "user" : "agent";
    const last = turns.at(-1);
    if (last !== undefined && from === "agent" && last.from === "agent") {
      last.text += last.part === part ? text : `\n\n${text}`;
      last.part = part;
    } else turns.push({ from, text, part });
  }
  return turns.some((turn) => turn.from === "agent") ? turns.map(({ from, text }) => ({ from, text })) : [];
}
