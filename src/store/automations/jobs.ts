import type { Database, Queryable } from "../../database/database.ts";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Job, JobTask } from "../../domain/automations/job.ts";
import { NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { sayRunFailed } from "../answers/session-replies.ts";
import { isoTime, listRows } from "../cursor.ts";

/** A job as the database has it, without the links that the API adds. */
export type JobRecord = Omit<Job, "sessionHtmlUrl" | "runStatus" | "sessions"> & {
  readonly sessions: readonly Omit<Job["sessions"][number], "htmlUrl">[];
};

const columns = `
  job.id, job.task, job.status, job.priority, job.automation_id as "automationId", job.session_id as "sessionId", job.error,
  ${isoTime("job.created_at")} as "createdAt", ${isoTime("job.updated_at")} as "updatedAt",
  coalesce((
    select jsonb_agg(jsonb_build_object('id', session.id, 'status', session.status, 'repositories', coalesce((
        select jsonb_agg(jsonb_build_object('id', repository.id, 'name', repository.name, 'url', repository.url) order by part.position)
        from session_repository part join repository on repository.id = part.repository_id
        where part.session_id = session.id), '[]')) order by session.job_part)
    from session where session.job_id = job.id), '[]') as sessions`;

/** A job to queue. `payload` is the context of the trigger's event. */
export interface JobToCreate {
  readonly id: string;
  readonly organizationId: string;
  readonly automationId: string;
  /** From 1, the most urgent, to 9. */
  readonly priority: number;
  readonly payload: EventContext;
  /** Default: RunWorkflow. */
  readonly task?: JobTask;
  /** W3C `traceparent` of the request that triggers the job, if tracing is on. */
  readonly traceParent?: string | null;
  /** Id of the ledger entry that this job repeats. */
  readonly replayOf?: string;
  /** The trigger that fired; omitted: that of the API. */
  readonly triggerId?: string | null;
  /** The session's repositories if the automation names none. */
  readonly repositoryIds?: readonly string[] | null;
  /** The ledger's entry of the event that it answers; null or omitted: none. */
  readonly eventId?: string | null;
}

/** Queues jobs, each idempotent by its id. The job's row is its own place in the queue, so one statement is enough. */
export async function createJobs(database: Database, toCreate: readonly JobToCreate[]): Promise<JobRecord[]> {
  const { rows } = await database.pool.query<JobRecord>({
    name: "create_jobs",
    text: `with created as (
             insert into job (id, organization_id, automation_id, priority, payload, trace_parent, replay_of, task, trigger_id,
               repository_ids, event_id)
             select distinct on (id) id, "organizationId", "automationId", priority, payload, "traceParent", "replayOf",
               coalesce(task, 'RunWorkflow'), "triggerId", "repositoryIds", "eventId"
             from jsonb_to_recordset($1::jsonb) as item (id uuid, "organizationId" uuid, "automationId" uuid,
               priority integer, payload jsonb, "traceParent" text, "replayOf" uuid, task text, "triggerId" uuid, "repositoryIds" uuid[], "eventId" uuid)
             on conflict (id) do nothing returning *, job as changed)
           select ${columns}, enqueue_job_webhooks(changed) from created as job`,
    values: [JSON.stringify(toCreate)],
  });
  database.notify("offstage_work", "job");
  const created = new Map(rows.map((job) => [job.id, job]));
  return Promise.all(
    toCreate.map(async ({ id, organizationId }) => {
      const job = created.get(id) ?? (await getJob(database, organizationId, id));
      if (job === null) throw new NotFoundError(`job ${id} was not found`);
      return job;
    }),
  );
}

/** A job of an organization by its id; null if there is none. */
export async function getJob(database: Database, organizationId: string, id: string): Promise<JobRecord | null> {
  const { rows } = await database.pool.query<JobRecord>(
    `select ${columns} from job where id = $1 and organization_id = $2`,
    [id, organizationId],
  );
  return rows[0] ?? null;
}

/**
 * Lists jobs, newest first: all of the organization's, or those of one automation.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listJobs(
  database: Database,
  organizationId: string,
  { automationId, ...query }: PageQuery & { readonly automationId?: string },
): Promise<Page<JobRecord>> {
  const condition = "($5::uuid is null or automation_id = $5)";
  return listRows<JobRecord>(database, organizationId, query, {
    table: "job",
    columns,
    condition,
    values: [automationId],
  });
}

/**
 * A job that a worker has claimed, with the automation as it was at the claim. `attempt` is the fence: a write under
 * an older attempt changes nothing.
 */
export interface ClaimedJob {
  readonly id: string;
  readonly organizationId: string;
  readonly attempt: number;
  readonly payload: EventContext;
  readonly traceParent: string | null;
  readonly automation: {
    readonly id: string;
    readonly name: string;
    readonly instructions: string;
    readonly agent: string | null;
    /** Whether each repository gets its own session. */
    readonly fanOut: boolean;
    readonly targetBranch: string | null;
    readonly priority: number;
    readonly repositories: readonly { readonly id: string; readonly name: string; readonly url: string }[];
  };
}

/**
 * Claims the next pending job for `leaseMs` milliseconds; null if there is none. The order is that of
 * src/store/sql/jobs/claim_job.sql.
 * @param busy ids of organizations and automations of which it wants no more now
 */
export async function claimJob(
  database: Database,
  {
    worker,
    leaseMs,
    busy = [],
  }: { readonly worker: string; readonly leaseMs: number; readonly busy?: readonly string[] },
): Promise<ClaimedJob | null> {
  const { rows } = await database.pool.query<ClaimedJob>({
    name: "claim_job",
    text: `select job_id as id, organization as "organizationId", attempt, payload, trace_parent as "traceParent", automation
           from claim_job($1, $2 * interval '1 millisecond', fans_out => true, busy => $3)`,
    values: [worker, leaseMs, busy],
  });
  return rows[0] ?? null;
}

/**
 * Keeps a claimed job from being claimed again for so many milliseconds from now, unless it is kept for longer already. A claim that was
 * lost changes nothing.
 */
export async function keepJob(database: Database, { id, attempt }: ClaimedJob, ms: number): Promise<void> {
  await database.pool.query(
    `update job set lease_until = greatest(lease_until, now() + $3 * interval '1 millisecond')
     where id = $1 and attempt = $2 and status = 'running'`,
    [id, attempt, ms],
  );
}

/** Records that the job has its session, the first of its run. A claim that was lost changes nothing. */
export async function completeJob(queryable: Queryable, claim: ClaimedJob, sessionId: string): Promise<void> {
  await queryable.query({
    name: "complete_job",
    text: "select from move_job($1, 'running', 'completed', of_attempt => $2, of_session => $3)",
    values: [claim.id, claim.attempt, sessionId],
  });
}

/**
 * Keeps a claimed job for the caller's transaction.
 * @returns the sessions that it has; null if the claim was lost
 */
export async function holdJob(transaction: Queryable, { id, attempt }: ClaimedJob): Promise<string[] | null> {
  const { rows } = await transaction.query<{ sessions: string[] }>({
    name: "hold_job",
    text: `select array(select id from session where job_id = $1 order by job_part) as sessions
           from job where id = $1 and attempt = $2 and status = 'running' for no key update`,
    values: [id, attempt],
  });
  return rows[0]?.sessions ?? null;
}

/** Cancels a job that has begun nothing, on request. @returns false if it is not pending, or has a session */
export async function cancelPendingJob(database: Database, organizationId: string, id: string): Promise<boolean> {
  const { rows } = await database.pool.query<{ isCancelled: boolean }>(
    `with pending as (
       select id from job
       where id = $1 and organization_id = $2 and status = 'pending' and not exists (select from session where job_id = $1)
       for no key update)
     select moved.id is not null as "isCancelled"
     from pending, move_job(pending.id, 'pending', 'cancelled', why => 'somebody cancelled it') as moved`,
    [id, organizationId],
  );
  return rows[0]?.isCancelled ?? false;
}

/**
 * Ends the job as failed, for the reason `error`, which counts as a failed run, and says so where its event came from. A claim that was
 * lost changes nothing.
 */
export async function failJob(database: Database, claim: ClaimedJob, error: string): Promise<void> {
  await fail(database, claim, error, { isDead: false });
}

/** @returns whether it failed now */
function fail(
  database: Database,
  { id, attempt }: Pick<ClaimedJob, "id" | "attempt">,
  reason: string,
  { isDead }: { readonly isDead: boolean },
): Promise<boolean> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ failed: boolean }>("select fail_job($1, $2, $3, $4) as failed", [
      id,
      attempt,
      reason,
      isDead,
    ]);
    if (rows[0]?.failed !== true) return false;
    await sayRunFailed(transaction, { jobId: id, reason });
    return true;
  });
}

/** Ends the job without a session, since it turned out that there is nothing to do. A claim that was lost changes nothing. */
export async function filterJob(database: Database, { id, attempt }: ClaimedJob, reason: string): Promise<void> {
  await database.pool.query("select from move_job($1, 'running', 'cancelled', of_attempt => $2, why => $3)", [
    id,
    attempt,
    reason,
  ]);
}

/** A job fails for good after this many attempts that did not end. What passes is waited for between them: src/worker/run-job.ts. */
const attemptLimit = 10;

/**
 * Requeues jobs with an expired lease, or all jobs of `worker`. A job that has used up its attempts fails instead.
 * @returns how many jobs were requeued or failed
 */
export async function recoverJobs(database: Database, options: { readonly worker?: string }): Promise<number> {
  const isLost = "status = 'running' and (lease_until < now() or worker = $1)";
  const values = [options.worker ?? null, attemptLimit];
  const { rowCount } = await database.pool.query(
    `with lost as (select id from job where ${isLost} and attempt < $2 for no key update)
     select move_job(id, 'running', 'pending') from lost`,
    values,
  );
  const { rows } = await database.pool.query<{ id: string; attempt: number }>(
    `select id, attempt from job where ${isLost} and attempt >= $2`,
    values,
  );
  let failed = 0;
  // Each in its own transaction: it locks its automation.
  for (const lost of rows) {
    const reason = `its worker broke off ${lost.attempt} times: see the server's log`;
    if (await fail(database, lost, reason, { isDead: true })) failed += 1;
  }
  return (rowCount ?? 0) + failed;
}
