import type { Database, Queryable } from "../../database/database.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { appendEvents } from "../sessions/events.ts";
import { underClaim, type Claim } from "./lease.ts";
import { underAttempt } from "./recorded-work.ts";

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
 * Records a commit that is about to be pushed as the session's own: for some there is no event, as for a merge of its
 * work with the branch, and its checks may be delivered before its push is recorded.
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
    `update session_repository set pushing_sha = $3,
       begun_pushes = array_append(array_remove(begun_pushes[coalesce(array_position(begun_pushes, pushed_sha), 1):], $3), $3)
     where session_id = $1 and position = $2 and pushing_sha is distinct from $3`,
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
