import type { Database } from "../database/database.ts";
import { OffstageError } from "../domain/errors.ts";
import { newSession } from "../domain/new-session.ts";
import { renderInstructions } from "../domain/template.ts";
import type { Logger } from "../observability.ts";
import { completeJob, failJob, type ClaimedJob } from "../store/jobs.ts";
import { createSession } from "../store/sessions.ts";

/**
 * Runs a trigger's job: renders the automation's instructions with the payload and creates the session, once.
 * A crash between the two lines is harmless, since a job has at most one session.
 */
export async function runJob(
  dependencies: { readonly database: Database; readonly logger: Logger; readonly sandboxed: boolean },
  job: ClaimedJob,
): Promise<void> {
  const { database, logger, sandboxed } = dependencies;
  const { automation, payload } = job;
  try {
    const prompt = await renderInstructions(automation.instructions, payload);
    const session = newSession({
      prompt,
      title: automation.name,
      agent: automation.agent,
      targetBranch: automation.targetBranch,
      repositories: automation.repositories,
      priority: automation.priority,
      automationId: automation.id,
      jobId: job.id,
      payload,
      sandboxed,
    });
    const created = await createSession(database, job.organizationId, session);
    await completeJob(database, job, created.id);
  } catch (error) {
    logger.warn({ err: error, job: job.id }, "a trigger's job failed");
    const reason =
      error instanceof OffstageError ? error.message : "something broke inside Offstage; see the server's log";
    await failJob(database, job, reason);
  }
}
