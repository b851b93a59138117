import type { Database } from "../../database/database.ts";
import {
  pullRequestSettingsSchema,
  type PullRequestSettings,
} from "../../domain/repositories/pull-request-settings.ts";

/** A session whose work on a forge a delivery tells of. */
export interface OwnWork {
  /**
   * Whether it made the commit, opened the pull request, pushed there last, made what was merged as, or along with, the commit, or opened a
   * pull request of the branch, to which others pushed.
   */
  readonly did: "commit" | "open" | "push" | "merged" | "branch";
  readonly automationId: string | null;
  /** Of the event that started the session's run, or of the first event that led to that. */
  readonly rootId: string | null;
  /** How many runs led to the work, whichever session did most of it: the same for all. */
  readonly depth: number;
  /** How its pull requests are opened; null: as usual. */
  readonly settings: PullRequestSettings | null;
}

/** Sessions whose work one event may be about; of more, the newest. */
const mostOwnWork = 20;

/**
 * The organization's sessions that made a commit or worked on a pull request, those that made the commit first, then the newest first.
 * @param of.sha whole or, as Bitbucket Cloud tells of pull requests, its beginning; null: no commit is known
 * @param of.pullRequests null: it is about none, or about those of a repository that is not connected
 * @param of.along other commits of the same push, whole
 * @param of.repositoryId where the commit may be what a pull request was merged as; null: it is not connected
 * @param of.branch there, which may be that of a pull request; null: none is known
 */
export async function findOwnWork(
  database: Database,
  organizationId: string,
  of: {
    readonly sha: string | null;
    readonly pullRequests: { readonly repositoryId: string; readonly numbers: readonly number[] } | null;
    readonly along: readonly string[];
    readonly repositoryId: string | null;
    readonly branch: string | null;
  },
): Promise<readonly OwnWork[]> {
  const { rows } = await database.pool.query<Omit<OwnWork, "settings"> & { readonly settings: unknown }>({
    name: "find_own_work",
    text: `with own (did, session_id) as (
        select 'commit', session_id from session_repository where pushed_sha >= $2 and pushed_sha < $2 || 'g'
        union select 'commit', session_id from session_commit where sha >= $2 and sha < $2 || 'g'
        union select 'open', session_id from pull_request
          where organization_id = $1 and repository_id = $3 and number = any($4::integer[])
        union select 'push', part.session_id from pull_request join session_repository part
          on part.repository_id = pull_request.repository_id and part.pushed_sha = pull_request.head_sha
          where organization_id = $1 and pull_request.repository_id = $3 and pull_request.number = any($4::integer[])
        union select 'merged', session_id from session_repository where pushed_sha = any($5::text[])
        union select 'merged', session_id from session_commit where sha = any($5::text[])
        union select 'merged', session_id from pull_request
          where organization_id = $1 and repository_id = $6 and left(merge_sha, 12) = left($2, 12)
        union select 'branch', session_id from pull_request
          where organization_id = $1 and repository_id = $6 and head = $7
            -- GitLab rebases a branch as it merges it.
            and (state = 'open' or closed_at > now() - interval '1 minute'))
      select did, session.automation_id as "automationId", coalesce(arrival.root_id, arrival.id) as "rootId",
        max(coalesce(arrival.depth, 0)) over () as depth, session.pull_request as settings
      from own join session on session.id = own.session_id and session.organization_id = $1
      left join job on job.id = session.job_id left join arrival on arrival.id = job.event_id
      order by did <> 'commit', session.created_at desc limit ${mostOwnWork}`,
    values: [
      organizationId,
      of.sha,
      of.pullRequests?.repositoryId ?? null,
      of.pullRequests?.numbers ?? [],
      of.along,
      of.repositoryId,
      of.branch,
    ],
  });
  return rows.map((row) => ({
    ...row,
    settings: row.settings === null ? null : pullRequestSettingsSchema.parse(row.settings),
  }));
}
