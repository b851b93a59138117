import type { PullRequest } from "../../domain/repositories/pull-request.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isoTime } from "../cursor.ts";
import { attentionOf } from "./attention.ts";

/** A session as the database has it, without the address in the web app and what depends on who asks, which the API adds. */
export type SessionRecord = Omit<SessionDetail, "htmlUrl" | "unread">;

/** The row that `sessionColumns` selects. */
export interface SessionRow {
  id: string;
  organization_id: string;
  title: string;
  description: string;
  prompt: string | null;
  status: SessionDetail["status"];
  agent: string | null;
  target_branch: string | null;
  branch_name: string;
  priority: number;
  queue_position: number | null;
  queued_at: Date | null;
  started_at: Date | null;
  finished_at: Date | null;
  failure: SessionDetail["failure"];
  summary: string | null;
  requested_by: SessionDetail["requestedBy"];
  automation_id: string | null;
  job_id: string | null;
  sandboxed: boolean;
  budget_usd: number | null;
  spent_usd: number;
  waiting: SessionDetail["waiting"];
  retry: SessionDetail["retry"];
  pull_request: SessionDetail["pullRequest"];
  labels: string[];
  setup_trial: boolean;
  archived_at: Date | null;
  attention: SessionDetail["attention"];
  events_removed_through: string;
  created_at: Date;
  updated_at: Date;
  repositories: SessionDetail["repositories"];
  pull_requests_together: boolean;
  pull_requests: PullRequest[];
}

/** The position in the queue is counted up to here. */
const positionLimit = 1_000;

/** SQL columns of a session with its queue position, repositories and pull requests. */
export const sessionColumns = `
  session.id, session.organization_id, session.title, session.description, session.prompt, session.status, session.agent,
  session.target_branch, session.branch_name, session.priority, session.queued_at, session.started_at,
  session.finished_at, with_remedy(session.failure) as failure, session.summary, session.automation_id, session.job_id,
  coalesce(
    (select jsonb_build_object('type', 'user', 'id', id, 'name', name) from user_account where id = session.requested_by),
    (select jsonb_build_object('type', 'key', 'id', id, 'name', name) from api_key where id = session.created_by)
  ) as requested_by,
  session.sandboxed,
  (session_budget_left(session) + session.spent_usd)::float8 as budget_usd, session.spent_usd::float8 as spent_usd,
  session.waiting, session.events_removed_through, session.pull_request, session.pull_requests_together,
  case when session.retry_at is not null then jsonb_build_object('at', ${isoTime("session.retry_at")},
    'reason', session.retry -> 'reason', 'code', session.retry -> 'code', 'attempt', session.retry -> 'attempt') end as retry,
  session.created_at, session.updated_at, session.archived_at, session.setup_trial,
  array(select label from session_label where session_id = session.id order by label collate "C") as labels,
  ${attentionOf("session")} as attention,
  case when session.status = 'queued' and session.retry_at is null then (
    select count(*)::integer from (
      select 1 from session ahead
      where claimable(ahead) and ahead.organization_id = session.organization_id
        and (ahead.priority, ahead.queued_at, ahead.id) < (session.priority, session.queued_at, session.id)
      limit ${positionLimit}) as counted) end as queue_position,
  coalesce((
    select jsonb_agg(jsonb_build_object('id', repository.id, 'name', repository.name, 'url', repository.url)
      order by part.position)
    from session_repository part join repository on repository.id = part.repository_id
    where part.session_id = session.id), '[]') as repositories,
  coalesce((
    select jsonb_agg(jsonb_build_object('repositoryId', pull_request.repository_id, 'number', pull_request.number,
      'url', pull_request.url, 'head', pull_request.head, 'target', pull_request.target, 'state', pull_request.state,
      'mergeable', pull_request.mergeable)
      order by pull_request.created_at)
    from pull_request join session_repository part
      on part.repository_id = pull_request.repository_id and part.session_id = session.id
    where pull_request.head = session.branch_name), '[]') as pull_requests`;

/** Converts a row to the record that the API answers. */
export function toSessionRecord(row: SessionRow): SessionRecord {
  return {
    id: row.id,
    title: row.title,
    description: row.description,
    status: row.status,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    organizationId: row.organization_id,
    prompt: row.prompt,
    agent: row.agent,
    targetBranch: row.target_branch,
    branchName: row.branch_name,
    priority: row.priority,
    queuePosition: row.queue_position,
    estimatedWaitSeconds: null,
    queuedAt: row.queued_at?.toISOString() ?? null,
    startedAt: row.started_at?.toISOString() ?? null,
    finishedAt: row.finished_at?.toISOString() ?? null,
    failure: row.failure,
    summary: row.summary,
    requestedBy: row.requested_by,
    automationId: row.automation_id,
    jobId: row.job_id,
    sandboxed: row.sandboxed,
    budgetUsd: row.budget_usd,
    spentUsd: row.spent_usd,
    waiting: row.waiting,
    retry: row.retry,
    pullRequest: row.pull_request,
    labels: row.labels,
    setupTrial: row.setup_trial,
    archivedAt: row.archived_at?.toISOString() ?? null,
    attention: row.attention,
    eventsRemovedThrough: Number(row.events_removed_through),
    repositories: row.repositories,
    pullRequestsTogether: row.pull_requests_together,
    pullRequests: row.pull_requests,
  };
}
