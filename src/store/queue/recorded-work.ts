import {
  pullRequestSettingsSchema,
  type PullRequestSettings,
} from "../../domain/repositories/pull-request-settings.ts";
import type { Database, Queryable } from "../../database/database.ts";
import type { ApprovalRules } from "../../domain/repositories/approval.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { appendEvents } from "../sessions/events.ts";
import { lockSession } from "../sessions/transition.ts";
import { LeaseLostError, underClaim, type Claim } from "./lease.ts";

// What a worker records of a session's work on its repositories: commits, diffs, pushes and pull requests.

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
  if (pushedSha !== undefined) {
    // Of turns that were not delivered yet this is what came of them. What is pushed again brings nothing of theirs.
    await transaction.query(
      `update message set pushed = jsonb_build_object($2::text, $3::text) || coalesce(pushed, '{}')
       from session where session.id = $1 and message.session_id = $1 and message.status = 'done' and message.answer is not null
         and message.position > session.settled_messages
         and exists (select from session_repository part
           where part.session_id = $1 and part.position = $4 and part.pushed_sha is distinct from $3)`,
      [sessionId, String(position), pushedSha, position],
    );
  }
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
  /** Who may approve it; null or omitted: what is recorded stays so. */
  readonly approval?: ApprovalRules | null | undefined;
  /** Whether it is what the session asked for, in whose name ever; omitted: it was found. */
  readonly created?: boolean | undefined;
}

/**
 * Records that a pull request is about to be asked for, so that the next attempt knows that there may be one if this one does not
 * learn the answer.
 * @param position index of the repository in the session
 * @param asked.sha the pushed commit for which it is
 * @param asked.by the user in whose name; null: in Offstage's own
 * @throws LeaseLostError
 */
export function saveAsked(
  database: Database,
  claim: Claim,
  position: number,
  asked: { readonly sha: string; readonly by: string | null },
): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query(
      `update session_repository set asked_sha = $3, asked_at = clock_timestamp(), asked_by = $4
       where session_id = $1 and position = $2`,
      [claim.sessionId, position, asked.sha, asked.by],
    );
  });
}

/** How a session's pull requests are opened; null: as usual. */
export async function readPullRequestSettings(
  database: Database,
  { sessionId }: Pick<Claim, "sessionId">,
): Promise<PullRequestSettings | null> {
  const { rows } = await database.pool.query<{ pull_request: unknown }>(
    "select pull_request from session where id = $1",
    [sessionId],
  );
  const saved = rows[0]?.pull_request ?? null;
  return saved === null ? null : pullRequestSettingsSchema.parse(saved);
}

/**
 * Saves a pull request; there is one row for each (repository, head, target). A new pull request replaces a closed
 * one, and its state is tracked as long as that of a new row. One that is new here and not open any more is saved as open: it is
 * for the caller to close it with `closePullRequest`, which tells of it.
 * @returns the row's id, whether it was unknown before, and the name of the person in whose name it was opened; null: nobody's
 * @throws LeaseLostError
 */
export function savePullRequest(
  database: Database,
  claim: Claim,
  opened: OpenedPullRequest,
): Promise<{ readonly id: string; readonly isNew: boolean; readonly openedBy: string | null }> {
  return underClaim(database, claim, async (transaction) => {
    const { rows } = await transaction.query<{ id: string; isNew: boolean; openedBy: string | null }>(
      `with before as (
         select number from pull_request where repository_id = $4 and head = $5 and target = $6),
       saved as (
         insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state,
           head_sha, approval, opened_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $10, $11, case when $12 then
           (select asked_by from session_repository where session_id = $3 and repository_id = $4 limit 1) end)
         on conflict (repository_id, head, target) do update
           set number = excluded.number, url = excluded.url, head_sha = excluded.head_sha,
             state = case when pull_request.number = excluded.number and pull_request.state = $9
               then pull_request.state else 'open' end,
             -- What the forge said was of another commit, or of another pull request.
             mergeable = null, mergeable_asked = 0, checked_at = '-infinity',
             approval = coalesce(excluded.approval, pull_request.approval),
             opened_by = case when pull_request.number = excluded.number
               then coalesce(excluded.opened_by, pull_request.opened_by) else excluded.opened_by end,
             session_id = case when pull_request.number = excluded.number then pull_request.session_id
               else excluded.session_id end,
             created_at = case when pull_request.number = excluded.number then pull_request.created_at else now() end
         returning pull_request as changed, id, opened_by, (select number from before) is distinct from number as is_new)
       select id, is_new as "isNew", (select name from user_account where user_account.id = opened_by) as "openedBy",
         case when is_new then enqueue_pull_request_webhooks(changed, 'opened') end from saved`,
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
        opened.approval == null ? null : JSON.stringify(opened.approval),
        opened.created === true,
      ],
    );
    const [row] = rows;
    if (row === undefined) throw new Error("the pull request was not returned");
    // What was asked for is known: nothing is waited for when a follow-up asks again.
    await transaction.query(
      "update session_repository set asked_sha = null, asked_at = null, asked_by = null where session_id = $1 and repository_id = $2",
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

/**
 * Records a commit that is about to be pushed: it is the session's own, also if no event tells of it, as of a merge of its work with the
 * branch; and its checks may be told of before its push is recorded.
 */
export async function noteCommit(
  transaction: Queryable,
  { sessionId }: Pick<Claim, "sessionId">,
  { position, sha }: { readonly position: number; readonly sha: string },
): Promise<void> {
  await transaction.query(
    "insert into session_commit (session_id, position, sha) values ($1, $2, $3) on conflict do nothing",
    [sessionId, position, sha],
  );
  await transaction.query(
    "update session_repository set pushing_sha = $3 where session_id = $1 and position = $2 and pushing_sha is distinct from $3",
    [sessionId, position, sha],
  );
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
