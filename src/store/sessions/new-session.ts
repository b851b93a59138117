import type { Database, Queryable } from "../../database/database.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import type { NewSession } from "../../domain/sessions/new-session.ts";
import type { Session } from "../../domain/sessions/session.ts";
import { sessionColumns, type SessionRecord } from "./session-record.ts";
import { requireSession } from "./sessions.ts";
import { notifyChange } from "./transition.ts";
import { one } from "../one-row.ts";

/** The answer to the creation of a session. */
export type CreatedSession = Omit<Session, "htmlUrl">;

/** A session to create, and its organization. */
export interface SessionToCreate {
  readonly organizationId: string;
  readonly session: NewSession;
}

/**
 * Creates sessions with their first events, messages and repositories in one statement, so that this takes one round
 * trip and one commit. Idempotent by session id and by job and part: a session that exists already is returned as it is.
 * @throws NotFoundError if an id belongs to a session of another organization
 */
export async function createSessions(
  database: Database,
  toCreate: readonly SessionToCreate[],
): Promise<CreatedSession[]> {
  const createdAt = await insertSessions(database.pool, toCreate);
  return Promise.all(
    toCreate.map(async ({ organizationId, session }) => {
      const { id, title, description, status, jobId, jobPart } = session;
      const at = createdAt.get(id)?.toISOString();
      // The same job or the same request created it before.
      if (at === undefined && jobId !== null) return sessionOfJob(database, organizationId, { jobId, jobPart });
      if (at === undefined) return requireSession(database, organizationId, id);
      notifyChange(database, id, status);
      return { id, title, description, status, createdAt: at, updatedAt: at, organizationId };
    }),
  );
}

/**
 * The statement of `createSessions`, within a transaction or outside. Clients that follow and workers are to be notified by the caller.
 * @returns when each was created, by id; those that exist already, or whose part of the job does, are left out
 */
export async function insertSessions(
  queryable: Queryable,
  toCreate: readonly SessionToCreate[],
): Promise<ReadonlyMap<string, Date>> {
  const { rows } = await queryable.query<{ id: string; created_at: Date }>({
    name: "create_sessions",
    text: `with input as (
        select distinct on (id) * from jsonb_to_recordset($1::jsonb) as item (
          id uuid, organization uuid, title text, description text, prompt text, status text, agent text, target_branch text,
          branch_name text, priority integer, automation uuid, job uuid, job_part integer, payload jsonb, created_by uuid, requested_by uuid, sandboxed boolean,
          trace_parent text, message text, events jsonb, repositories jsonb, gate text, pull_request jsonb, together boolean,
          labels text[], setup_trial boolean, budget numeric)),
      created as (
        insert into session (id, organization_id, title, description, prompt, status, agent, target_branch, branch_name,
          priority, automation_id, job_id, job_part, payload, created_by, requested_by, sandboxed, last_event, queued_at, trace_parent,
          pull_request, pull_requests_together, setup_trial, budget_usd)
        select id, organization, title, description, prompt, status, agent, target_branch, branch_name, priority, automation,
          job, coalesce(job_part, 0), payload, created_by, coalesce(requested_by, (select user_id from api_key where api_key.id = created_by)), sandboxed,
          jsonb_array_length(events), case when status = 'queued' then now() end, trace_parent, nullif(pull_request, 'null'), together, setup_trial, budget
        from input
        on conflict do nothing
        returning id, created_at, session as changed),
      first_events as (
        insert into event (session_id, seq, type, data)
        select id, item.position, item.value ->> 'type', item.value -> 'data'
        from created join input using (id), jsonb_array_elements(events) with ordinality as item (value, position)),
      first_messages as (
        insert into message (id, session_id, position, text, status)
        select id, id, 1, message, case when setup_trial then 'done' else 'pending' end from created join input using (id)),
      gates as (
        insert into session_gate (session_id, script) select id, gate from created join input using (id) where gate is not null),
      repositories as (
        insert into session_repository (session_id, repository_id, position, directory)
        select created.id, (item.value ->> 'id')::uuid, item.position, item.value ->> 'directory'
        from created join input using (id), jsonb_array_elements(repositories) with ordinality as item (value, position)),
      labels as (
        insert into session_label (session_id, label, organization_id, session_created_at)
        select created.id, item.label, (changed).organization_id, created_at
        from created join input using (id), unnest(labels) as item (label))
      select id, created_at, case when exists (
          select from webhook where webhook.organization_id = (changed).organization_id and enabled)
        then enqueue_session_webhooks(changed) end from created`,
    values: [JSON.stringify(toCreate.map(toInput))],
  });
  return new Map(rows.map(({ id, created_at }) => [id, created_at]));
}

function toInput({ organizationId, session }: SessionToCreate): Record<string, unknown> {
  const events: NewEvent[] = [
    { type: "session.created", data: { title: session.title } },
    ...session.notices.map((text): NewEvent => ({ type: "notice", data: { level: "warning", text } })),
    { type: "message.user", data: { messageId: session.id, text: session.message, from: null } },
  ];
  return {
    id: session.id,
    organization: organizationId,
    title: session.title,
    description: session.description,
    prompt: session.prompt,
    status: session.status,
    agent: session.agent,
    target_branch: session.targetBranch,
    branch_name: session.branchName,
    priority: session.priority,
    automation: session.automationId,
    job: session.jobId,
    job_part: session.jobPart,
    payload: session.payload,
    created_by: session.createdBy,
    requested_by: session.requestedBy,
    sandboxed: session.sandboxed,
    trace_parent: session.traceParent,
    // The first message has the same id as the session.
    message: session.message,
    gate: session.gate,
    pull_request: session.pullRequest,
    together: session.pullRequestsTogether,
    budget: session.budgetUsd,
    labels: session.labels,
    setup_trial: session.setupTrial,
    events,
    repositories: session.repositories,
  };
}

/** Creates one session. See `createSessions`. */
export async function createSession(
  database: Database,
  organizationId: string,
  session: NewSession,
): Promise<CreatedSession> {
  return one(await createSessions(database, [{ organizationId, session }]), "session", session.id);
}

async function sessionOfJob(
  database: Database,
  organizationId: string,
  { jobId, jobPart }: Pick<NewSession, "jobId" | "jobPart">,
): Promise<SessionRecord> {
  const { rows } = await database.pool.query<SessionRecord>(
    `select ${sessionColumns} from session where job_id = $1 and job_part = $3 and session.organization_id = $2`,
    [jobId, organizationId, jobPart],
  );
  return one(rows, "the session of job", jobId ?? "");
}
