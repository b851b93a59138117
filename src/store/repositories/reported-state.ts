import type { Database } from "../../database/database.ts";

/** The repository of a pull request that a delivery is about. */
interface ReportedRepository {
  readonly organizationId: string;
  readonly repositoryId: string;
}

/**
 * SQL for the commit that the session of a pull request is pushing, or has pushed, if it works still: that is recorded as the pull request's
 * newest a moment after the push.
 */
const pushingSha = `(select pushing_sha from session_repository part join session on session.id = part.session_id
  where part.session_id = pull_request.session_id and part.repository_id = pull_request.repository_id
    and session.status in ('queued', 'running', 'waiting') limit 1)`;

/**
 * Records that a check of a commit ended, for the open pull requests whose newest commit it is, or is soon since their
 * sessions are pushing it, and notifies their sessions' pages. A check that ends again counts by its last end; those of
 * an earlier commit count no more.
 * @param check its key: the same each time that it ends
 */
export async function noteCheck(
  database: Database,
  { organizationId, repositoryId }: ReportedRepository,
  { sha, check, outcome }: { readonly sha: string; readonly check: string; readonly outcome: "passed" | "failed" },
): Promise<void> {
  const { rows } = await database.pool.query<{ session_id: string }>(
    `update pull_request set checks = (
       select jsonb_build_object('sha', $3::text,
         'failed', (coalesce(so.failed, '[]') - $4::text) || case when $5 = 'failed' then jsonb_build_array($4::text) else '[]' end,
         'passed', (coalesce(so.passed, '[]') - $4::text) || case when $5 = 'passed' then jsonb_build_array($4::text) else '[]' end)
       from (select checks -> 'failed' as failed, checks -> 'passed' as passed where checks ->> 'sha' = $3
             union all select null, null limit 1) as so)
     where organization_id = $1 and repository_id = $2 and state = 'open'
       and $3 = any(case when checks ->> 'sha' = ${pushingSha} then array[${pushingSha}] else array[head_sha, ${pushingSha}] end)
     returning session_id`,
    [organizationId, repositoryId, sha, check, outcome],
  );
  for (const { session_id: id } of rows) database.notify("offstage_event", id);
}

/** Records what a review of an open pull request said last; null: it was dismissed. */
export async function noteReview(
  database: Database,
  { organizationId, repositoryId }: ReportedRepository,
  number: number,
  review: "approved" | "changesRequested" | null,
): Promise<void> {
  const { rows } = await database.pool.query<{ session_id: string }>(
    `update pull_request set review = $4 where organization_id = $1 and repository_id = $2 and number = $3 and state = 'open'
     returning session_id`,
    [organizationId, repositoryId, number, review],
  );
  for (const { session_id: id } of rows) database.notify("offstage_event", id);
}

/** Records the commit that a merged pull request became on its target branch. @param sha whole, or its beginning */
export async function noteMerge(
  database: Database,
  { organizationId, repositoryId }: ReportedRepository,
  number: number,
  sha: string,
): Promise<void> {
  await database.pool.query(
    "update pull_request set merge_sha = $4 where organization_id = $1 and repository_id = $2 and number = $3",
    [organizationId, repositoryId, number, sha],
  );
}

/**
 * Whether a push to a branch may be the merge of a session's pull request, which the forge has not delivered yet: it
 * delivers the push and the merge in any order, and may know only later which commit it was merged as.
 * @param isTold whether only a pull request counts whose merge was delivered, for a minute
 */
export async function mayBeMerged(
  database: Database,
  { organizationId, repositoryId }: ReportedRepository,
  branch: string,
  isTold: boolean,
): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    `select from pull_request where organization_id = $1 and repository_id = $2 and target = $3 and merge_sha is null
       and ((state = 'open' and not $4) or (state = 'merged' and closed_at > now() - interval '1 minute')) limit 1`,
    [organizationId, repositoryId, branch, isTold],
  );
  return rowCount === 1;
}
