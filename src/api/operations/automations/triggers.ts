import { z } from "zod";
import { eventContextSchema, type Automation, type EventContext } from "../../../domain/automations/automation.ts";
import { queuedJobSchema, type JobTask, type QueuedJob } from "../../../domain/automations/job.ts";
import { triggerSchema, type Trigger } from "../../../domain/automations/trigger.ts";
import { ConflictError, ForbiddenError, NotFoundError } from "../../../domain/errors/errors.ts";
import type { Principal } from "../../../domain/people/key.ts";
import { getAutomation, type AutomationRecord } from "../../../store/automations/automations.ts";
import { fireTrigger } from "../../../store/automations/firings.ts";
import { getJob } from "../../../store/automations/jobs.ts";
import { refusalOfChain } from "../../../store/automations/own-chain.ts";
import { rotateTrigger } from "../../../store/automations/trigger-secrets.ts";
import { expressionOf, type NewSecrets, type TriggerRecord } from "../../../store/automations/triggers.ts";
import type { QueuedCaller } from "../../../templates/fair-queue.ts";
import { principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { databaseOfSecret } from "../../http/idempotency.ts";
import { checkJsonValue } from "../../http/json-value.ts";
import { requestOrigin } from "../../http/origin.ts";
import { answers, keyOrIdParameters, requireUuid } from "../../http/shapes.ts";
import { requireNotPaused } from "../resolve.ts";

const tags = ["Automations"];

/** An automation as the API shows it: with the addresses of its triggers, and the secrets that were made just now. */
export function toAutomation(
  options: Pick<ApiOptions, "publicUrl">,
  record: AutomationRecord,
  secrets: NewSecrets = new Map(),
): Automation {
  return {
    ...record,
    triggers: record.triggers.map((trigger) => toTrigger(options, trigger, secrets.get(trigger.id))),
  };
}

function toTrigger({ publicUrl }: Pick<ApiOptions, "publicUrl">, record: TriggerRecord, secret?: string): Trigger {
  if (record.type !== "webhook" && record.type !== "source") return record;
  return { ...record, url: `${publicUrl()}/hook/${record.id}`, ...(secret !== undefined && { secret }) };
}

/** Adds the operations on triggers: fire that of the API, replace a secret. */
export function addTriggerOperations(app: App, options: ApiOptions): void {
  for (const noun of ["automation", "agent"] as const) addTrigger(app, options, noun);
  app.post(
    "/automation/:keyOrId/trigger/:id/rotate",
    {
      config: { operation: { scope: "write", creates: true, secretAnswer: true } },
      schema: {
        tags,
        operationId: "rotateTrigger",
        summary:
          "Replace a trigger's secret, or the address of a webhook that has none; the old secret counts for a day",
        params: keyOrIdParameters.extend({ id: z.string() }),
        response: answers(triggerSchema),
      },
    },
    async (request) => {
      const principal = principalOfRequest(request);
      const { organizationId } = principal;
      const { id: automationId } = await requireAutomation(options, principal, request.params.keyOrId);
      const triggerId = requireUuid("trigger", request.params.id);
      const { id, secret } = await rotateTrigger(
        databaseOfSecret(options.database, request),
        options.vault,
        { organizationId, automationId },
        triggerId,
        Date.now(),
      );
      const { triggers } = await requireAutomation(options, principal, automationId);
      const rotated = triggers.find((trigger) => trigger.id === id);
      if (rotated === undefined) throw new NotFoundError(`trigger ${id} was not found`);
      return toTrigger(options, rotated, secret ?? undefined);
    },
  );
}

/** Adds the specification's trigger. `agent` is an older noun for `automation` in the path. */
function addTrigger(
  app: App,
  options: Pick<ApiOptions, "inserts" | "database" | "templates">,
  noun: "automation" | "agent",
): void {
  app.post(
    `/${noun}/:keyOrId/trigger`,
    {
      config: {
        operation: { scope: "trigger", creates: true, queues: true, ledger: true, optionalBody: true, hasEvent: true },
      },
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
      return triggerAutomation(options, principalOfRequest(request), keyOrId, {
        ...requestOrigin(request),
        payload: request.body,
        task: noun === "automation" ? "RunWorkflow" : "RunAgent",
      });
    },
  );
}

interface Call {
  readonly id: string;
  readonly traceParent: string | null;
  readonly payload: EventContext;
  readonly task: JobTask;
  /** Why it starts nothing; omitted: its trigger decides. */
  readonly refusal?: string;
}

async function triggerAutomation(
  options: Pick<ApiOptions, "inserts" | "database" | "templates">,
  principal: Principal,
  keyOrId: string,
  call: Call,
): Promise<QueuedJob> {
  checkJsonValue(call.payload, "the body");
  const automation = await requireTriggerable(options, principal, keyOrId);
  requireNotPaused(automation);
  const { organizationId } = principal;
  const { id: automationId, priority, triggers } = automation;
  const own = triggers.find(({ type }) => type === "api");
  const refusal = await refusalOfChain(options.database, { organizationId, automationId }, call.payload);
  if (own !== undefined && (!isPlain(own) || refusal !== null))
    return triggerByPolicy(options, principal, automation, own, { ...call, ...(refusal !== null && { refusal }) });
  return options.inserts.createJob({ ...call, organizationId, automationId, priority });
}

/** Whether every call starts a run: jobs of such triggers are inserted in batches. */
function isPlain({ enabled, condition, concurrency, debounceSeconds, maxPerHour }: TriggerRecord): boolean {
  return enabled && condition === "" && concurrency === null && debounceSeconds === null && maxPerHour === null;
}

/**
 * Fires the trigger of the API as its condition and its policy have it. What starts no run is answered as a job that is cancelled
 * already, and is in the ledger.
 * @throws ConflictError if the trigger is disabled
 */
async function triggerByPolicy(
  { database, templates }: Pick<ApiOptions, "database" | "templates">,
  principal: Principal,
  automation: AutomationRecord,
  own: TriggerRecord,
  call: Call,
): Promise<QueuedJob> {
  const { organizationId } = principal;
  const { id: automationId, priority, paused, repositories } = automation;
  if (!own.enabled)
    throw new ConflictError(`automation ${automation.macro} can't be triggered by the API: its trigger is disabled`);
  const variables = { event: call.payload, repository: null };
  const verdict = await templates.evaluateOne(expressionOf(own), variables, askerOf(principal));
  const fireable = {
    id: own.id,
    organizationId,
    automationId,
    priority,
    paused,
    trigger: own,
    hasRepositories: repositories.length > 0,
  };
  const { ledgerId } = await fireTrigger(database, fireable, verdict, call);
  const job = await getJob(database, organizationId, ledgerId);
  if (job === null) throw new Error(`the job ${ledgerId} of a trigger was not written`);
  return job;
}

/**
 * Finds the automation to trigger. A key that is limited to certain automations gets the same answer whether another
 * automation exists or not, so that it reveals nothing about them.
 * @throws ForbiddenError if the key is limited to other automations
 * @throws NotFoundError if the key is not limited and there is no such automation
 */
async function requireTriggerable(
  options: Pick<ApiOptions, "database">,
  principal: Principal,
  keyOrId: string,
): Promise<AutomationRecord> {
  const { automationIds } = principal;
  const automation = await requireAutomation(options, principal, keyOrId).catch((error: unknown) => {
    if (automationIds !== null && error instanceof NotFoundError) return null;
    throw error;
  });
  if (automation !== null && automationIds?.includes(automation.id) !== false) return automation;
  throw new ForbiddenError(`this key may not trigger ${keyOrId.slice(0, 100)}: it is limited to other automations`);
}

/** The caller of a rendering, for fairness: each key and each user has its own queue. */
export function askerOf({ organizationId, keyId, userId }: Principal): QueuedCaller {
  return { organizationId, id: keyId ?? userId ?? "" };
}

/** @throws NotFoundError */
export async function requireAutomation(
  options: Pick<ApiOptions, "database">,
  principal: Principal,
  keyOrId: string,
): Promise<AutomationRecord> {
  // PostgreSQL rejects NUL, and no automation's name contains one.
  const known = !keyOrId.includes("\0");
  const automation = known ? await getAutomation(options.database, principal.organizationId, keyOrId) : null;
  if (automation === null) throw new NotFoundError(`automation ${keyOrId.slice(0, 100)} was not found`);
  return automation;
}
