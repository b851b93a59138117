import type { z } from "zod";
import {
  automationPreviewSchema,
  automationSchema,
  createAutomationSchema,
  previewAutomationSchema,
  titleOfRun,
  updateAutomationSchema,
} from "../../../domain/automations/automation.ts";
import { jobSchema } from "../../../domain/automations/job.ts";
import { makesSecret } from "../../../domain/automations/trigger.ts";
import { ConflictError, InvalidInputError } from "../../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import type { Principal } from "../../../domain/people/key.ts";
import {
  createAutomation,
  deleteAutomation,
  listAutomations,
  updateAutomation,
  type AutomationRecord,
} from "../../../store/automations/automations.ts";
import { listJobs } from "../../../store/automations/jobs.ts";
import { organizationOf, personOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { databaseOfSecret, idOfCreated } from "../../http/idempotency.ts";
import { answers, keyOrIdParameters } from "../../http/shapes.ts";
import { toJob } from "./jobs.ts";
import { checkAgent, requireOneSession, resolveRepositories } from "../resolve.ts";
import { askerOf, requireAutomation, toAutomation } from "./triggers.ts";

const tags = ["Automations"];

/** Adds the operations on automations: create, list, show, change, delete, preview, list jobs. */
export function addAutomationOperations(app: App, options: ApiOptions): void {
  const { database } = options;
  app.post(
    "/automation/create",
    {
      config: { operation: { scope: "write", creates: true, secretBody: true, secretAnswer: answersSecret } },
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
        triggers,
        ...others
      } = request.body;
      const { title = null, gate = null, ...rest } = others;
      await checkAgent(options, agent);
      await options.templates.check(rest.instructions, askerOf(principal));
      if (title !== null) await checkTitle(options, title, principal);
      await options.templates.checkTriggers(triggers, askerOf(principal));
      const resolved = await resolveRepositories(options, organizationId, {
        repositories,
        codeRepoIds,
        fanOut: rest.fanOut,
      });
      const repositoryIds = resolved.map(({ id }) => id);
      const { automation, secrets } = await createAutomation(
        databaseOfSecret(database, request),
        organizationId,
        {
          ...rest,
          title,
          gate,
          id: idOfCreated(request),
          createdBy: await personOf(database, principal),
          agent,
          targetBranch,
          budgetUsd,
          repositoryIds,
        },
        { vault: options.vault, list: triggers, now: Date.now() },
      );
      return toAutomation(options, automation, secrets);
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
        response: answers(pageSchema("automations", automationSchema)),
      },
    },
    async (request) => {
      const page = await listAutomations(database, organizationOf(request), request.query);
      return {
        automations: page.items.map((automation) => toAutomation(options, automation)),
        nextCursor: page.nextCursor,
      };
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
    async (request) =>
      toAutomation(options, await requireAutomation(options, principalOfRequest(request), request.params.keyOrId)),
  );
  addAutomationChanges(app, options);
  addRuns(app, options);
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
      const before = await requireAutomation(options, principal, request.params.keyOrId);
      const { id } = before;
      const { repositories, codeRepoIds, triggers, ...changes } = request.body;
      // The right to write is enough to pause an automation from a file.
      if (Object.keys(request.body).some((field) => field !== "paused")) requireNotOfFile(before);
      const fanOut = changes.fanOut ?? before.fanOut;
      await checkAgent(options, changes.agent);
      if (changes.instructions !== undefined) {
        await options.templates.check(changes.instructions, askerOf(principal));
      }
      if (changes.title != null) await checkTitle(options, changes.title, principal);
      if (triggers !== undefined) await options.templates.checkTriggers(triggers, askerOf(principal));
      const named = repositories !== undefined || codeRepoIds !== undefined;
      const resolved = named
        ? await resolveRepositories(options, principal.organizationId, { repositories, codeRepoIds, fanOut })
        : undefined;
      if (resolved === undefined && !fanOut) requireOneSession(before);
      const repositoryIds = resolved?.map((repository) => repository.id);
      const { automation, secrets } = await updateAutomation(
        database,
        principal.organizationId,
        id,
        { ...changes, repositoryIds },
        triggers === undefined ? null : { vault: options.vault, list: triggers, now: Date.now() },
      );
      return toAutomation(options, automation, secrets);
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
      const known = await requireAutomation(options, principal, request.params.keyOrId);
      requireNotOfFile(known);
      const { id } = known;
      return toAutomation(options, await deleteAutomation(database, principal.organizationId, id));
    },
  );
  app.post(
    "/automation/:keyOrId/preview",
    {
      config: { operation: { scope: "read", hasEvent: true } },
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

function addRuns(app: App, options: Pick<ApiOptions, "database" | "publicUrl">): void {
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
        response: answers(pageSchema("runs", jobSchema)),
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

/** Whether the answer to a creation has a secret that is shown once. */
function answersSecret(body: unknown): boolean {
  return (body as z.output<typeof createAutomationSchema>).triggers.some(makesSecret);
}

/** @throws InvalidInputError that names the field, if the template of a title can't be parsed */
async function checkTitle(
  { templates }: Pick<ApiOptions, "templates">,
  title: string,
  principal: Principal,
): Promise<void> {
  try {
    await templates.check(title, askerOf(principal));
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.message.replace(/^instructions\b/u, "title"), { cause: error });
  }
}

/** @throws ConflictError that names the file, if the automation is kept in one */
function requireNotOfFile({ macro, file }: AutomationRecord): void {
  if (file === null) return;
  throw new ConflictError(`automation ${macro} is kept in ${file.path} of its repository: change it there`);
}
