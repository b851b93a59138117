import type { Database, Queryable } from "../../database/database.ts";
import { storableJson } from "../../domain/fields/text.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { appendEvents } from "../sessions/events.ts";
import type { KeptSubmodule } from "../sessions/file-requests.ts";
import { lockSession } from "../sessions/transition.ts";
import { LeaseLostError, underClaim, type Claim } from "./lease.ts";

// A worker's record of a session's work on its repositories: commits, diffs, pushes and pull requests.

/** New values for a repository of a session. `patch` is a unified diff. */
export interface RepositoryProgress {
  readonly baseSha?: string;
  readonly headSha?: string;
  readonly pushedSha?: string;
  readonly patch?: string;
  readonly patchTruncated?: boolean;
  /** The submodules that its clone has. */
  readonly submodules?: readonly KeptSubmodule[];
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
 * Appends a notice of an attempt that ended without completing, also if its session was cancelled meanwhile.
 * @throws LeaseLostError if another attempt has begun
 */
export async function noticeOfEnded(
  database: Database,
  claim: Claim,
  data: Extract<NewEvent, { type: "notice" }>["data"],
): Promise<void> {
  await underAttempt(database, claim, (transaction) =>
    appendEvents(transaction, claim.sessionId, [{ type: "notice", data }]),
  );
  database.notify("offstage_event", claim.sessionId);
}

/**
 * Runs a write of the session's last attempt, whether or not the session is over.
 * @throws LeaseLostError if another attempt has begun
 */
export function underAttempt(
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
  { baseSha, headSha, pushedSha, patch, patchTruncated, submodules }: RepositoryProgress,
): Promise<void> {
  if (pushedSha !== undefined) {
    // For turns that were not delivered yet, this is their delivery. A repeated push has nothing of theirs.
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
       patch_truncated = coalesce($7, patch_truncated), submodules = coalesce($8, submodules)
     where session_id = $1 and position = $2`,
    // PostgreSQL's text can't hold NUL. A diff that contains one is of a binary file.
    [
      sessionId,
      position,
      baseSha,
      headSha,
      pushedSha,
      patch?.replaceAll("\0", "\u2400"),
      patchTruncated,
      submodules && storableJson(submodules),
    ],
  );
}

/** The record of earlier exports and pushes of a session's work on one repository. */
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
