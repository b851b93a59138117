import { z } from "zod";
import {
  automationPreviewSchema,
  automationSchema,
  createAutomationSchema,
  eventContextSchema,
  previewAutomationSchema,
  titleOfRun,
  updateAutomationSchema,
  type Automation,
  type EventContext,
} from "../../domain/automations/automation.ts";
import { queuedJobSchema, jobSchema, type JobTask, type QueuedJob } from "../../domain/automations/job.ts";
import { ForbiddenError, InvalidInputError, NotFoundError } from "../../domain/errors/errors.ts";
import { pageOf, pageQuerySchema } from "../../domain/fields/list.ts";
import type { Principal } from "../../domain/people/key.ts";
import {
  createAutomation,
  deleteAutomation,
  getAutomation,
  listAutomations,
  updateAutomation,
} from "../../store/automations/automations.ts";
import { listJobs } from "../../store/automations/jobs.ts";
import type { Requester } from "../../templates/fair-queue.ts";
import { organizationOf, principalOfRequest } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { idOfCreated } from "../http/idempotency.ts";
import { checkJsonValue } from "../http/json-value.ts";
import { originOf } from "../http/origin.ts";
import { answers, keyOrIdParameters } from "../http/shapes.ts";
import { toJob } from "./jobs.ts";
import { checkAgent, requireNotPaused, resolveRepositories } from "./resolve.ts";

const tags = ["Automations"];

/** Adds the operations on automations: create, list, show, change, delete, preview, list jobs, trigger. */
export function addAutomationOperations(app: App, options: ApiOptions): void {
  const { database } = options;
  app.post(
    "/automation/create",
    {
      config: { operation: { scope: "write", creates: true } },
      schema: {
        tags,
        operationId: "createAutomation",
        summary: "Create an automation",
        body: createAutomationSchema,
        response: answers(automationSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const { organizationId } = principal;
      const {
        repositories,
        codeRepoIds,
        agent = null,
        targetBranch = null,
        budgetUsd = null,
        ...others
      } = request.body;
      const { title = null, ...rest } = others;
      await checkAgent(options, agent);
      await options.templates.check(rest.instructions, askerOf(principal));
      if (title !== null) await checkTitle(options, title, principal);
      const resolved = await resolveRepositories(options, organizationId, { repositories, codeRepoIds });
      const repositoryIds = resolved.map(({ id }) => id);
      return createAutomation(database, organizationId, {
        ...rest,
        title,
        id: idOfCreated(request),
        agent,
        targetBranch,
        budgetUsd,
        repositoryIds,
      });
    },
  );
  app.get(
    "/automation/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listAutomations",
        summary: "List automations",
        querystring: pageQuerySchema,
        response: answers(pageOf("automations", automationSchema)),
      },
    },
    async (request) => {
      const page = await listAutomations(database, organizationOf(request), request.query);
      return { automations: page.items, nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/automation/:keyOrId",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getAutomation",
        summary: "Show an automation",
        params: keyOrIdParameters,
        response: answers(automationSchema),
      },
    },
    (request) => requireAutomation(options, principalOfRequest(request), request.params.keyOrId),
  );
  addAutomationChanges(app, options);
  addRuns(app, options);
  for (const noun of ["automation", "agent"] as const) addTrigger(app, options, noun);
}

function addAutomationChanges(app: App, options: ApiOptions): void {
  const { database } = options;
  app.post(
    "/automation/:keyOrId/update",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "updateAutomation",
        summary: "Change an automation",
        params: keyOrIdParameters,
        body: updateAutomationSchema,
        response: answers(automationSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const { id } = await requireAutomation(options, principal, request.params.keyOrId);
      const { repositories, codeRepoIds, ...changes } = request.body;
      await checkAgent(options, changes.agent);
      if (changes.instructions !== undefined) {
        await options.templates.check(changes.instructions, askerOf(principal));
      }
      if (changes.title != null) await checkTitle(options, changes.title, principal);
      const named = repositories !== undefined || codeRepoIds !== undefined;
      const resolved = named
        ? await resolveRepositories(options, principal.organizationId, { repositories, codeRepoIds })
        : undefined;
      const repositoryIds = resolved?.map((repository) => repository.id);
      return updateAutomation(database, principal.organizationId, id, { ...changes, repositoryIds });
    },
  );
  app.post(
    "/automation/:keyOrId/delete",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "deleteAutomation",
        summary: "Delete an automation",
        params: keyOrIdParameters,
        response: answers(automationSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const { id } = await requireAutomation(options, principal, request.params.keyOrId);
      return deleteAutomation(database, principal.organizationId, id);
    },
  );
  app.post(
    "/automation/:keyOrId/preview",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "previewAutomation",
        summary: "Render the instructions with a sample event, without running anything",
        params: keyOrIdParameters,
        body: previewAutomationSchema,
        response: answers(automationPreviewSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const { instructions, title, name } = await requireAutomation(options, principal, request.params.keyOrId);
      const render = (template: string): Promise<string> =>
        options.templates.render(template, request.body.event, askerOf(principal));
      const prompt = await render(instructions);
      return { prompt, title: titleOfRun(title === null ? null : await render(title), prompt, name) };
    },
  );
}

function addRuns(app: App, options: ApiOptions): void {
  app.get(
    "/automation/:keyOrId/runs",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listRuns",
        summary: "List the jobs of an automation",
        params: keyOrIdParameters,
        querystring: pageQuerySchema,
        response: answers(pageOf("runs", jobSchema)),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const { id } = await requireAutomation(options, principal, request.params.keyOrId);
      const page = await listJobs(options.database, principal.organizationId, { ...request.query, automationId: id });
      return { runs: page.items.map((job) => toJob(options, job)), nextCursor: page.nextCursor };
    },
  );
}

/** Adds the specification's trigger. `agent` is an older noun for `automation` in the path. */
function addTrigger(app: App, options: ApiOptions, noun: "automation" | "agent"): void {
  app.post(
    `/${noun}/:keyOrId/trigger`,
    {
      config: { operation: { scope: "trigger", creates: true, queues: true, ledger: true, optionalBody: true } },
      // Runs before the validator, which treats a missing body like null.
      preValidation: (request, _reply, done) => {
        if (request.body === undefined) (request as { body: unknown }).body = {};
        done();
      },
      schema: {
        tags,
        operationId: noun === "automation" ? "triggerAutomation" : "triggerAgent",
        summary: "Trigger an automation; the body is its event",
        params: keyOrIdParameters,
        querystring: z.object({ apiKey: z.string().optional() }),
        body: eventContextSchema,
        response: answers(queuedJobSchema),
      },
    },
    (request) => {
      const { keyOrId } = request.params;
      return trigger(options, principalOfRequest(request), keyOrId, {
        ...originOf(request),
        payload: request.body,
        task: noun === "automation" ? "RunWorkflow" : "RunAgent",
      });
    },
  );
}

async function trigger(
  options: ApiOptions,
  principal: Principal,
  keyOrId: string,
  {
    id,
    traceParent,
    payload,
    task,
  }: {
    readonly id: string;
    readonly traceParent: string | null;
    readonly payload: EventContext;
    readonly task: JobTask;
  },
): Promise<QueuedJob> {
  checkJsonValue(payload, "the body");
  const automation = await requireTriggerable(options, principal, keyOrId);
  requireNotPaused(automation);
  const { organizationId } = principal;
  const { id: automationId, priority } = automation;
  return options.inserts.createJob({ id, organizationId, automationId, priority, payload, traceParent, task });
}

/**
 * Finds the automation to trigger. A key that is limited to certain automations gets the same answer whether another
 * automation exists or not, so that it reveals nothing about them.
 * @throws ForbiddenError if the key is limited to other automations
 * @throws NotFoundError if the key is not limited and there is no such automation
 */
async function requireTriggerable(options: ApiOptions, principal: Principal, keyOrId: string): Promise<Automation> {
  const { automationIds } = principal;
  const automation = await requireAutomation(options, principal, keyOrId).catch((error: unknown) => {
    if (automationIds !== null && error instanceof NotFoundError) return null;
    throw error;
  });
  if (automation !== null && automationIds?.includes(automation.id) !== false) return automation;
  throw new ForbiddenError(`this key may not trigger ${keyOrId.slice(0, 100)}: it is limited to other automations`);
}

/** @throws InvalidInputError that names the field, if the template of a title can't be parsed */
async function checkTitle({ templates }: ApiOptions, title: string, principal: Principal): Promise<void> {
  try {
    await templates.check(title, askerOf(principal));
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.message.replace(/^instructions\b/u, "title"), { cause: error });
  }
}

/** Who asks for a template to be rendered: each key and each user has its own turn. */
function askerOf({ organizationId, keyId, userId }: Principal): Requester {
  return { organizationId, id: keyId ?? userId ?? "" };
}

async function requireAutomation(options: ApiOptions, principal: Principal, keyOrId: string): Promise<Automation> {
  // PostgreSQL rejects NUL, and no automation's name contains one.
  const known = !keyOrId.includes("\0");
  const automation = known ? await getAutomation(options.database, principal.organizationId, keyOrId) : null;
  if (automation === null) throw new NotFoundError(`automation ${keyOrId.slice(0, 100)} was not found`);
  return automation;
}
