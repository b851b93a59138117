import {
  pullRequestSettingsSchema,
  type PullRequestSettings,
} from "../../domain/repositories/pull-request-settings.ts";
import type { Database } from "../../database/database.ts";
import { newId } from "../../domain/fields/new-id.ts";
import type { ApprovalRules } from "../../domain/repositories/approval.ts";
import { underClaim, type Claim } from "./lease.ts";

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
 * Saves a pull request; there is one row for each (repository, head, target). A new pull request replaces a closed one,
 * and its state is tracked as long as that of a new row. One that is new here and not open any more is saved as open:
 * the caller closes it with `closePullRequest`, which announces it.
 * @returns the row's id, whether it was unknown before, and the name of the person in whose name it was opened; null
 *   if none
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
        newId(),
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
    // The request has its result: a follow-up need not wait when it requests again.
    await transaction.query(
      "update session_repository set asked_sha = null, asked_at = null, asked_by = null where session_id = $1 and repository_id = $2",
      [claim.sessionId, opened.repositoryId],
    );
    return row;
  });
}
