import type { Database } from "../database/database.ts";
import { titleOfRun } from "../domain/automations/automation.ts";
import { ConflictError, OffstageError, TooManyRequestsError, UnavailableError } from "../domain/errors/errors.ts";
import { newSession } from "../domain/sessions/new-session.ts";
import type { Logger } from "../observability.ts";
import { getAutomation } from "../store/automations/automations.ts";
import { completeJob, failJob, type ClaimedJob } from "../store/automations/jobs.ts";
import { findRepositories } from "../store/repositories/repositories.ts";
import { createSession } from "../store/sessions/new-session.ts";
import type { Templates } from "../templates/templates.ts";
import { kindOfError, type OpenSpan, type Traces } from "../traces.ts";

/**
 * Runs a trigger's job: renders the automation's instructions with the payload and creates the session.
 * A crash between creating the session and completing the job is harmless, since a job has at most one session.
 * A permanent error fails the job; any other is logged, and the job is claimed again when its lease expires.
 */
export function runJob(dependencies: JobDependencies, job: ClaimedJob): Promise<void> {
  const attributes = { "offstage.job.id": job.id, "offstage.organization.id": job.organizationId };
  const options = { traceParent: job.traceParent, kind: "consumer", attributes } as const;
  return dependencies.traces.span("job.run", options, (span) => createFromJob(dependencies, job, span));
}

interface JobDependencies {
  readonly database: Database;
  readonly logger: Logger;
  readonly traces: Traces;
  readonly templates: Templates;
  readonly sandboxed: boolean;
}

async function createFromJob(dependencies: JobDependencies, job: ClaimedJob, span: OpenSpan | null): Promise<void> {
  const { database, sandboxed, templates } = dependencies;
  const logger = dependencies.logger.child({ jobId: job.id, organizationId: job.organizationId, attempt: job.attempt });
  const { automation, payload } = job;
  try {
    await requireConnected(database, job);
    const prompt = await templates.render(automation.instructions, payload, askerOf(job));
    const template = (await getAutomation(database, job.organizationId, automation.id))?.title ?? null;
    const title = template === null ? null : await templates.render(template, payload, askerOf(job));
    const session = newSession({
      prompt,
      title: titleOfRun(title, prompt, automation.name),
      agent: automation.agent,
      targetBranch: automation.targetBranch,
      repositories: automation.repositories,
      priority: automation.priority,
      automationId: automation.id,
      jobId: job.id,
      payload,
      sandboxed,
      traceParent: span?.traceParent ?? job.traceParent,
    });
    const created = await createSession(database, job.organizationId, session);
    await completeJob(database, job, created.id);
    logger.info({ sessionId: created.id }, "job created its session");
  } catch (error) {
    span?.fail(kindOfError(error));
    if (error instanceof OffstageError && !isPassing(error)) {
      logger.warn({ err: error }, "job failed");
      await failJob(database, job, error.message);
    } else {
      // A fault of the server's, which may pass: the job is claimed again when its lease expires, a limited number of times.
      logger.error({ err: error }, "job aborted unexpectedly; will retry");
    }
  }
}

/** Jobs queue for the template renderer separately from the users who try out templates. */
const askerOf = ({ organizationId }: ClaimedJob) => ({ organizationId, id: "jobs" });

/** Whether the same job may succeed later, on this worker or another. */
const isPassing = (error: OffstageError): boolean =>
  error instanceof UnavailableError || error instanceof TooManyRequestsError;

/** An automation keeps the names of repositories that were disconnected since. @throws ConflictError if there is one */
async function requireConnected(database: Database, { organizationId, automation }: ClaimedJob): Promise<void> {
  const { repositories } = automation;
  if (repositories.length === 0) return;
  const ids = repositories.map(({ id }) => id);
  const connected = new Set((await findRepositories(database, organizationId, ids)).map(({ id }) => id));
  const gone = repositories.find(({ id }) => !connected.has(id));
  if (gone === undefined) return;
  throw new ConflictError(`${gone.url} was disconnected: set the automation's repositories again`);
}
