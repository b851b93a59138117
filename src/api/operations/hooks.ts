import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { receivedSchema, type Received } from "../../domain/automations/trigger.ts";
import { NotFoundError, UnauthenticatedError } from "../../domain/errors/errors.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import type { Delivery, DeliveryReader } from "../../inbound/delivery.ts";
import { readWebhook } from "../../inbound/webhook.ts";
import { deliveringForges, readerOf, type DeliveringForge } from "../../inbound/forges/readers.ts";
import { consentTo } from "../../inbound/sources/cloud-events.ts";
import { receiveEvent } from "../../store/automations/inbound-events.ts";
import { findReceivingTrigger } from "../../store/automations/triggers.ts";
import { readConnectionForDelivery } from "../../store/secrets/forge-connections.ts";
import { createAdmission, type Admission } from "../http/admission.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { errorSchema } from "../http/errors.ts";
import { createRateLimitById } from "../http/rate-limit.ts";
import {
  deliverToSource,
  deliverToWebhook,
  eventKeys,
  storablePayload,
  type TriggerDelivery,
} from "./trigger-deliveries.ts";

const tags = ["Hooks"];
/** Answers of the operations that take deliveries. 200: what a sender asks for to know the address. */
const responses = { 200: z.string(), 202: receivedSchema, "4xx": errorSchema, "5xx": errorSchema };
/** What takes deliveries: whether more work may begin, and how many of an address in a minute. */
interface Intake {
  readonly admit: Admission;
  readonly takeToken: (address: string, reply: FastifyReply) => void;
}

/** What a sender is answered: what came of its delivery, or what it asked for to know the address. */
type Answer = Received | { readonly contentType: string; readonly body: string };

/** Adds the operations that take deliveries. Their bodies are read as bytes: signatures are over these. */
export async function addHookOperations(app: App, options: ApiOptions): Promise<void> {
  const intake: Intake = {
    admit: createAdmission(options),
    takeToken: createRateLimitById(options.rateLimitPerMinute, "the sender of this address"),
  };
  await app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, parsed) => parsed(null, body));
    addTriggerHook(scope, options, intake);
    addForgeHook(scope, options, intake);
    done();
  });
}

function addTriggerHook(app: App, options: ApiOptions, intake: Intake): void {
  app.post(
    "/hook/:triggerId",
    {
      config: { operation: { scope: null } },
      schema: {
        tags,
        operationId: "deliverToTrigger",
        summary: "Deliver an event to a trigger of type webhook or source",
        params: z.object({ triggerId: z.string() }),
        querystring: z.object({ access_token: z.string().optional() }),
        response: responses,
      },
    },
    async (request, reply) => {
      const triggerId = request.params.triggerId.toLowerCase();
      intake.takeToken(triggerId, reply);
      const answer = await receiveForTrigger(options, intake.admit, triggerId, request);
      if (!("outcome" in answer)) return reply.status(200).type(answer.contentType).send(answer.body);
      options.metrics.deliveryReceived(answer.outcome);
      return reply.status(202).send(answer);
    },
  );
  app.options(
    "/hook/:triggerId",
    { schema: { hide: true, params: z.object({ triggerId: z.string() }) } },
    (request, reply) =>
      reply
        .status(204)
        .headers({ ...consentTo(headersOf(request), options.rateLimitPerMinute) })
        .send(),
  );
}

async function receiveForTrigger(
  options: ApiOptions,
  admit: Admission,
  triggerId: string,
  request: FastifyRequest<{ Querystring: { access_token?: string | undefined } }>,
): Promise<Answer> {
  const { database, vault } = options;
  const now = Date.now();
  const found = isUuid(triggerId) ? await findReceivingTrigger(database, vault, triggerId, now) : null;
  if (found === null) throw new NotFoundError(`trigger ${triggerId.slice(0, 100)} was not found`);
  const { secrets, ...fireable } = found;
  const delivery = withToken(deliveryOf(request), request.query.access_token);
  const received: TriggerDelivery = {
    fireable,
    delivery,
    secrets,
    now,
    traceParent: request.span?.traceParent ?? null,
    verified: (isRight) => requireSigned(options, isRight),
    admitted: () => admit(fireable.organizationId),
  };
  return fireable.trigger.type === "source"
    ? deliverToSource(options, received, fireable.trigger)
    : deliverToWebhook(options, received);
}

function addForgeHook(app: App, options: ApiOptions, intake: Intake): void {
  app.post(
    "/hook/forge/:connectionId",
    {
      config: { operation: { scope: null } },
      schema: {
        tags,
        operationId: "deliverToConnection",
        summary: "Deliver an event of a forge to all triggers that listen to its connection",
        params: z.object({ connectionId: z.string() }),
        response: responses,
      },
    },
    async (request, reply) => {
      const connectionId = request.params.connectionId.toLowerCase();
      intake.takeToken(connectionId, reply);
      const answer = await receiveForConnection(options, intake.admit, connectionId, request);
      if (!("outcome" in answer)) return reply.status(200).type(answer.contentType).send(answer.body);
      options.metrics.deliveryReceived(answer.outcome);
      return reply.status(202).send(answer);
    },
  );
}

async function receiveForConnection(
  options: ApiOptions,
  admit: Admission,
  connectionId: string,
  request: FastifyRequest,
): Promise<Answer> {
  const { database, vault } = options;
  const found = isUuid(connectionId) ? await readConnectionForDelivery(database, vault, connectionId) : null;
  const reader = found === null ? null : forgeReader(found.kind);
  if (found === null || reader === null) {
    throw new NotFoundError(`connection ${connectionId.slice(0, 100)} was not found, or its forge delivers no events`);
  }
  const { organizationId, secrets } = found;
  const delivery = deliveryOf(request);
  requireSigned(options, reader.verify(delivery, secrets, Date.now()));
  await admit(organizationId);
  const handshake = reader.handshake?.(delivery) ?? null;
  if (handshake !== null) return handshake;
  const { deliveryId, events } = reader.read(delivery);
  const shared = { organizationId, connectionId, scope: connectionId, deliveryId };
  const traceParent = request.span?.traceParent ?? null;
  if (events.length === 0) {
    const nothing = { name: null, contentKey: null, subject: null, payload: storablePayload(readWebhook(delivery)) };
    return receiveEvent(database, {
      ...shared,
      ...nothing,
      id: randomUUID(),
      keys: eventKeys(deliveryId, null, 0),
      traceParent,
    });
  }
  const all: Received[] = [];
  for (const { name, contentKey, subject, event } of events) {
    const received = { name, contentKey, subject, payload: storablePayload(event), keepsPayload: all.length === 0 };
    all.push(
      await receiveEvent(database, {
        ...shared,
        ...received,
        id: randomUUID(),
        keys: eventKeys(deliveryId, contentKey, all.length),
        traceParent,
      }),
    );
  }
  return foremost(all);
}

/** Null: the kind of forge, such as plain git, delivers nothing. */
function forgeReader(kind: string): DeliveryReader | null {
  const known = deliveringForges.find((each): each is DeliveringForge => each === kind);
  return known === undefined ? null : readerOf(known);
}

/** Of several events of one delivery: one that was accepted, else a duplicate, else the first. */
function foremost(all: readonly Received[]): Received {
  const found = ["accepted", "duplicate", "filtered"]
    .map((outcome) => all.find((each) => each.outcome === outcome))
    .find((each) => each !== undefined);
  if (found === undefined) throw new Error("a delivery without events has no outcome");
  return found;
}

/** @throws UnauthenticatedError, which is counted, if a delivery is not signed as it must be */
function requireSigned({ metrics }: Pick<ApiOptions, "metrics">, isRight: boolean): void {
  if (isRight) return;
  metrics.deliveryReceived("refused");
  throw new UnauthenticatedError(
    "the delivery's signature is missing or wrong: send it with the secret of this address",
  );
}

/** The request as its sender made it. */
function deliveryOf(request: FastifyRequest): Delivery {
  return { headers: headersOf(request), body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0) };
}

function headersOf({ headers }: FastifyRequest): Delivery["headers"] {
  const single = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(", ") : value,
  ]);
  return Object.fromEntries(single) as Delivery["headers"];
}

/** Some senders can put their token into the address alone (RFC 6750, section 2.3). */
function withToken(delivery: Delivery, token: string | undefined): Delivery {
  if (token === undefined || delivery.headers["authorization"] !== undefined) return delivery;
  return { ...delivery, headers: { ...delivery.headers, authorization: `Bearer ${token}` } };
}
