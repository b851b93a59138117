import { createHash, randomUUID } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { receivedSchema, type Received } from "../../domain/automations/trigger.ts";
import { NotFoundError, UnauthenticatedError } from "../../domain/errors/errors.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import type { Delivery } from "../../inbound/delivery.ts";
import { readWebhook, verifyWebhook, webhookDeliveryId } from "../../inbound/webhook.ts";
import { fireTrigger } from "../../store/automations/firings.ts";
import { expressionOf, findReceivingTrigger } from "../../store/automations/triggers.ts";
import { createAdmission, type Admission } from "../http/admission.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { errorSchema } from "../http/errors.ts";
import { checkNesting } from "../http/json-value.ts";

const tags = ["Hooks"];
/** Answers of the operations that take deliveries. */
const responses = { 202: receivedSchema, "4xx": errorSchema, "5xx": errorSchema };

/** Adds the operations that take deliveries. Their bodies are read as bytes: signatures are over these. */
export async function addHookOperations(app: App, options: ApiOptions): Promise<void> {
  const admit = createAdmission(options);
  await app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, parsed) => parsed(null, body));
    addHook(scope, options, admit);
    done();
  });
}

function addHook(app: App, options: ApiOptions, admit: Admission): void {
  app.post(
    "/hook/:triggerId",
    {
      config: { operation: { scope: null } },
      schema: {
        tags,
        operationId: "deliverToTrigger",
        summary: "Deliver an event to a trigger of type webhook or source",
        params: z.object({ triggerId: z.string() }),
        response: responses,
      },
    },
    async (request, reply) => {
      const received = await receive(options, admit, request.params.triggerId, request);
      options.metrics.deliveryReceived(received.outcome);
      return reply.status(202).send(received);
    },
  );
}

/** The request as its sender made it. */
function deliveryOf({ headers, body }: FastifyRequest): Delivery {
  const single = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(", ") : value,
  ]);
  return {
    headers: Object.fromEntries(single) as Delivery["headers"],
    body: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
  };
}

async function receive(
  options: ApiOptions,
  admit: Admission,
  triggerId: string,
  request: FastifyRequest,
): Promise<Received> {
  const { database, vault, metrics } = options;
  const now = Date.now();
  const found = isUuid(triggerId) ? await findReceivingTrigger(database, vault, triggerId, now) : null;
  if (found === null) throw new NotFoundError(`trigger ${triggerId.slice(0, 100)} was not found`);
  const { secrets, ...fireable } = found;
  const { trigger } = fireable;
  if (trigger.type !== "webhook") throw new NotFoundError(`trigger ${triggerId.slice(0, 100)} was not found`);
  const delivery = deliveryOf(request);
  if (!verifyWebhook(trigger.verify, delivery, secrets, now)) {
    metrics.deliveryReceived("refused");
    throw new UnauthenticatedError("the delivery's signature is missing or wrong: send it with the trigger's secret");
  }
  await admit(fireable.organizationId);
  const payload = readWebhook(delivery);
  checkNesting(payload, "the body");
  const deliveryId = webhookDeliveryId(delivery);
  const [verdict] = await options.templates.evaluate(
    [expressionOf(trigger)],
    { event: payload, repository: null },
    { organizationId: fireable.organizationId, id: triggerId },
  );
  const fired = await fireTrigger(database, fireable, verdict ?? { passes: true, key: null }, {
    id: randomUUID(),
    payload,
    deliveryId,
    keys: deliveryId === null ? sameContentKeys(delivery, now) : [`delivery:${deliveryId}`],
    traceParent: request.span?.traceParent ?? null,
  });
  return { outcome: fired.outcome, ledgerId: fired.ledgerId };
}

/** Time within which an equal body of a sender without delivery ids is the same delivery, in ms; at most twice as long. */
const sameContentMs = 60_000;

/**
 * Keys of a delivery without an id: its body, in this minute and the next. So a sender that tries again at once is told apart from
 * one that says the same later.
 */
function sameContentKeys({ body }: Delivery, now: number): string[] {
  const hash = createHash("sha256").update(body).digest("base64url");
  const minute = Math.floor(now / sameContentMs);
  return [minute, minute + 1].map((each) => `content:${hash}:${each}`);
}
