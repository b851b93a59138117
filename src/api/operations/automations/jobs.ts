import { jobSchema, type Job } from "../../../domain/automations/job.ts";
import { runStatusOf } from "../../../domain/automations/run.ts";
import { NotFoundError } from "../../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import { cancelRun } from "../../../store/sessions/cancel-run.ts";
import { getJob, listJobs, type JobRecord } from "../../../store/automations/jobs.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Jobs"];

/** A job as the API shows it, with its session's address in the web app. */
export function toJob(options: Pick<ApiOptions, "publicUrl">, record: JobRecord): Job {
  const { sessionId } = record;
  const pageOfSession = (id: string): string => `${options.publicUrl()}/sessions/${id}`;
  return {
    ...record,
    sessionHtmlUrl: sessionId === null ? null : pageOfSession(sessionId),
    runStatus: runStatusOf(
      record.status,
      record.sessions.map(({ status }) => status),
    ),
    sessions: record.sessions.map((session) => ({ ...session, htmlUrl: pageOfSession(session.id) })),
  };
}

/** Adds the operations on jobs: list, show, cancel. */
export function addJobOperations(app: App, options: Pick<ApiOptions, "database" | "publicUrl">): void {
  app.get(
    "/job/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listJobs",
        summary: "List jobs",
        querystring: pageQuerySchema,
        response: answers(pageSchema("jobs", jobSchema)),
      },
    },
    async (request) => {
      const page = await listJobs(options.database, organizationOf(request), request.query);
      return { jobs: page.items.map((job) => toJob(options, job)), nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/job/:id",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getJob",
        summary: "Show a job, with the session that it started or its error",
        params: idParameters,
        response: answers(jobSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      return showJob(options, organizationId, idOf(request, "job"));
    },
  );
  app.post(
    "/job/:id/cancel",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "cancelJob",
        summary: "Cancel a run: its job, or all of its sessions that have not ended",
        params: idParameters,
        response: answers(jobSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const id = idOf(request, "job");
      await cancelRun(options.database, organizationId, id);
      return showJob(options, organizationId, id);
    },
  );
}

async function showJob(
  options: Pick<ApiOptions, "database" | "publicUrl">,
  organizationId: string,
  id: string,
): Promise<Job> {
  const job = await getJob(options.database, organizationId, id);
  if (job === null) throw new NotFoundError(`job ${id} was not found`);
  return toJob(options, job);
}
