import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isoTime } from "../cursor.ts";
import { attentionOf } from "./attention.ts";

/** A session as the database has it, without the address in the web app and what depends on who asks, which the API adds. */
export type SessionRecord = Omit<SessionDetail, "htmlUrl" | "unread">;

/** The newest events of a running session among which its agent's last tool call is looked for. */
const eventsLookedAt = 100;
/** The position in the queue is counted up to here. */
const positionLimit = 1_000;

/** SQL columns of a session, named as the record's fields: with its queue position, repositories and pull requests. */
export const sessionColumns = `
  session.id, session.title, session.description, session.status, ${isoTime("session.created_at")} as "createdAt",
  ${isoTime("session.updated_at")} as "updatedAt", session.organization_id as "organizationId", session.prompt, session.agent,
  session.target_branch as "targetBranch", session.branch_name as "branchName", session.priority,
  case when session.status = 'queued' and session.retry_at is null then (
    select count(*)::integer from (
      select 1 from session ahead
      where claimable(ahead) and ahead.organization_id = session.organization_id
        and (ahead.priority, ahead.queued_at, ahead.id) < (session.priority, session.queued_at, session.id)
      limit ${positionLimit}) as counted) end as "queuePosition",
  null as "estimatedWaitSeconds", ${isoTime("session.queued_at")} as "queuedAt", ${isoTime("session.started_at")} as "startedAt",
  ${isoTime("session.finished_at")} as "finishedAt", with_remedy(session.failure) as failure, session.summary,
  coalesce(
    (select jsonb_build_object('type', 'user', 'id', id, 'name', name) from user_account where id = session.requested_by),
    (select jsonb_build_object('type', 'key', 'id', id, 'name', name) from api_key where id = session.created_by)
  ) as "requestedBy",
  session.automation_id as "automationId", session.job_id as "jobId", session.sandboxed,
  (session_budget_left(session) + session.spent_usd)::float8 as "budgetUsd", session.spent_usd::float8 as "spentUsd",
  case when session.status = 'running' then (
    select data ->> 'title' from event
    where event.session_id = session.id and event.seq > session.last_event - ${eventsLookedAt} and event.type = 'agent.tool'
    order by event.seq desc limit 1) end as activity,
  session.waiting,
  case when session.retry_at is not null then jsonb_build_object('at', ${isoTime("session.retry_at")},
    'reason', session.retry -> 'reason', 'code', session.retry -> 'code', 'attempt', session.retry -> 'attempt') end as retry,
  session.pull_request as "pullRequest",
  array(select label from session_label where session_id = session.id order by label collate "C") as labels,
  session.setup_trial as "setupTrial", ${isoTime("session.archived_at")} as "archivedAt", ${attentionOf("session")} as attention,
  session.events_removed_through::float8 as "eventsRemovedThrough",
  coalesce((
    select jsonb_agg(jsonb_build_object('id', repository.id, 'name', repository.name, 'url', repository.url)
      order by part.position)
    from session_repository part join repository on repository.id = part.repository_id
    where part.session_id = session.id), '[]') as repositories,
  session.pull_requests_together as "pullRequestsTogether",
  coalesce((
    select jsonb_agg(jsonb_build_object('repositoryId', pull_request.repository_id, 'number', pull_request.number,
      'url', pull_request.url, 'head', pull_request.head, 'target', pull_request.target, 'state', pull_request.state,
      'mergeable', pull_request.mergeable, 'review', pull_request.review,
      'checks', case when pull_request.checks ->> 'sha' = pull_request.head_sha
        then case when pull_request.checks -> 'failed' = '[]' then 'passed' else 'failed' end end)
      order by pull_request.created_at)
    from pull_request join session_repository part
      on part.repository_id = pull_request.repository_id and part.session_id = session.id
    where pull_request.head = session.branch_name), '[]') as "pullRequests"`;
