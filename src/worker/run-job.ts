import type { Database } from "../database/database.ts";
import { titleOfRun } from "../domain/automations/automation.ts";
import { readForgeEvent } from "../domain/automations/event-subject.ts";
import { replyTargetOf } from "../domain/automations/reply-target.ts";
import { ConflictError, OffstageError, TooManyRequestsError, UnavailableError } from "../domain/errors/errors.ts";
import { newSession, type NewSession } from "../domain/sessions/new-session.ts";
import { titleOf } from "../domain/sessions/session.ts";
import { backoffMs } from "../domain/time/backoff.ts";
import type { Logger } from "../observability.ts";
import { getAutomation } from "../store/automations/automations.ts";
import { failJob, filterJob, keepJob, type ClaimedJob } from "../store/automations/jobs.ts";
import { findRepositories } from "../store/repositories/repositories.ts";
import { createRun, resumeRun } from "../store/sessions/new-run.ts";
import type { Templates } from "../templates/templates.ts";
import { kindOfError, type OpenSpan, type Traces } from "../traces.ts";
import { findDeliveredRun, type DeliveredRun, type DeliveredRunServices } from "./delivered-run.ts";

/**
 * Pauses of a job that could not be done for a reason that passes, such as a forge that does not answer, in ms: with its ten attempts it
 * outlasts an hour.
 */
const pauses = { fromMs: 15_000, toMs: 1_800_000, jitter: 0.2 };

/**
 * Runs a trigger's job: renders the automation's instructions with the payload and creates the session, or one for each
 * repository. Both are one transaction. A job that is claimed again completes with the sessions that it has, without
 * being rendered again. A permanent error fails the job; any other is logged, and the job is claimed again when its
 * lease expires.
 */
export function runJob(dependencies: JobDependencies, job: ClaimedJob): Promise<void> {
  const attributes = { "offstage.job.id": job.id, "offstage.organization.id": job.organizationId };
  const options = { traceParent: job.traceParent, kind: "consumer", attributes } as const;
  return dependencies.traces.span("job.run", options, (span) => createFromJob(dependencies, job, span));
}

interface JobDependencies extends DeliveredRunServices {
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
    const delivered = await findDeliveredRun(dependencies, job);
    const origin = { replyTarget: replyTargetOf(payload), delivered: typeof delivered === "string" ? null : delivered };
    if (job.attempt > 1 && (await resumeRun(database, job, origin))) {
      logger.info("job has its sessions already");
      return;
    }
    if (typeof delivered === "string") {
      logger.info({ reason: delivered }, "job starts nothing");
      await filterJob(database, job, delivered);
      return;
    }
    await requireConnected(database, job);
    const prompt = await templates.render(automation.instructions, payload, askerOf(job));
    const saved = await getAutomation(database, job.organizationId, automation.id);
    const template = saved?.title ?? null;
    const title = template === null ? null : await templates.render(template, payload, askerOf(job));
    const isConfidential = readForgeEvent(payload)?.confidential === true;
    const sessionFor = (repositories: ClaimedJob["automation"]["repositories"], jobPart: number): NewSession =>
      newSession({
        prompt,
        // Also that of the branch, the commits and the pull request, which more people may read than a confidential event.
        title: isConfidential ? titleOf(automation.name) : titleOfRun(title, prompt, automation.name),
        agent: automation.agent,
        ...branchesOf(delivered, automation),
        repositories,
        jobPart,
        priority: automation.priority,
        automationId: automation.id,
        jobId: job.id,
        payload,
        gate: saved?.gate ?? null,
        pullRequest: saved?.pullRequest ?? null,
        pullRequestsTogether: saved?.pullRequestsTogether ?? false,
        sandboxed,
        traceParent: span?.traceParent ?? job.traceParent,
      });
    const works = repositoriesOf(delivered, automation);
    const sessions =
      automation.fanOut && works.length > 1
        ? works.map((repository, part) => sessionFor([repository], part))
        : [sessionFor(works, 0)];
    const [sessionId, ...others] = await createRun(database, job, sessions, origin);
    if (sessionId === undefined) logger.warn("the job was lost; another worker has it");
    else if (others.length === 0) logger.info({ sessionId }, "job created its session");
    else logger.info({ sessionId, sessions: others.length + 1 }, "job created its sessions");
  } catch (error) {
    span?.fail(kindOfError(error));
    if (error instanceof OffstageError && !isPassing(error)) {
      logger.warn({ err: error }, "job failed");
      await failJob(database, job, error.message);
    } else if (error instanceof OffstageError) {
      const pauseMs = backoffMs(job.attempt, pauses);
      await keepJob(database, job, pauseMs);
      logger.warn({ err: error, pauseMs }, "could not do a job now; will retry");
    } else {
      // A fault of the server's, which may pass: the job is claimed again when its lease expires, a limited number of times.
      logger.error({ err: error }, "job aborted unexpectedly; will retry");
    }
  }
}

/** The branches of the run: of a run that pushes to a pull request, that one's. */
function branchesOf(delivered: DeliveredRun | null, { targetBranch }: ClaimedJob["automation"]) {
  const { head = null, target = null } =
    (delivered?.pushTo === "pullRequest" ? delivered.event.pullRequest : undefined) ?? {};
  return head === null || target === null ? { targetBranch } : { targetBranch: target, branchName: head.branch };
}

/** The repositories of a run: of one that pushes to a pull request, only that one's repository. */
function repositoriesOf(
  delivered: DeliveredRun | null,
  { repositories }: ClaimedJob["automation"],
): ClaimedJob["automation"]["repositories"] {
  return delivered?.pushTo === "pullRequest" ? [delivered.repository] : repositories;
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
