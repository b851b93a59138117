import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { InboundEvent } from "../../../domain/automations/inbound-event.ts";
import { isSigned, receivedSchema, type Received } from "../../../domain/automations/trigger.ts";
import type { ForgeEvent } from "../../../domain/automations/forge-event.ts";
import { steeringHintOf } from "../../../domain/conversations/steering-hint.ts";
import { NotFoundError, UnauthenticatedError, UnavailableError } from "../../../domain/errors/errors.ts";
import { newId } from "../../../domain/fields/new-id.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../../domain/repositories/repository.ts";
import { isUuid } from "../../../domain/fields/uuid.ts";
import type { InboundDelivery, DeliveryReader } from "../../../inbound/delivery.ts";
import { readWebhook } from "../../../inbound/webhook.ts";
import { withNameOf } from "../../../inbound/forges/azure-mentions.ts";
import { inRepositoryOf } from "../../../inbound/forges/azure-work-items.ts";
import { deliveringForges, readerOf, type DeliveringForge } from "../../../inbound/forges/readers.ts";
import { consentTo } from "../../../inbound/sources/cloud-events.ts";
import { askForSync } from "../../../store/automations/file-sync.ts";
import { createReceivingTriggers, type ReceivingTriggers } from "../../../store/automations/receiving-triggers.ts";
import type { Known } from "../../../store/known.ts";
import { createDeliveringConnections, type DeliveringConnection } from "../../../store/secrets/event-connections.ts";
import { createAdmission, type AdmissionCheck } from "../../http/admission.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { errorSchema } from "../../http/errors.ts";
import { createRateLimitById } from "../../http/rate-limit.ts";
import {
  deliverToTrigger,
  eventKeys,
  foremost,
  handshakeOf,
  isSignedDelivery,
  storablePayload,
  type AddressHandshake,
} from "./trigger-deliveries.ts";

const tags = ["Hooks"];
/** Answers of the operations that take deliveries. 200: what a sender asks for to know the address. */
const responses = { 200: z.string(), 202: receivedSchema, "4xx": errorSchema, "5xx": errorSchema };
/** Limits on deliveries: whether more work may begin, and how many per address and minute. */
interface HookServices {
  readonly triggers: ReceivingTriggers;
  readonly connections: Known<DeliveringConnection>;
  readonly admit: AdmissionCheck;
  readonly rates: DeliveryRates;
}

/**
 * How many deliveries an address takes in a minute. Deliveries without a valid signature, which anyone can send who
 * knows the address, are counted separately, so that they do not block signed ones. Each throws TooManyRequestsError.
 */
interface DeliveryRates {
  readonly takeSigned: (address: string, reply: FastifyReply) => void;
  /** Of an address that asks for no signature. */
  readonly takeUnsigned: (address: string, reply: FastifyReply) => void;
  readonly takeRefused: (address: string, reply: FastifyReply) => void;
}

function createDeliveryRates({ rateLimitPerMinute, deliveriesPerMinute }: ApiOptions): DeliveryRates {
  const sender = "the sender of this address";
  return {
    takeSigned: createRateLimitById(deliveriesPerMinute, sender),
    takeUnsigned: createRateLimitById(rateLimitPerMinute, sender),
    takeRefused: createRateLimitById(rateLimitPerMinute, "who sends to this address without a right signature"),
  };
}

/** The answer to a sender: the outcome of its delivery, or its check of the address. */
type Answer = Received | AddressHandshake;

/** Adds the operations that take deliveries. Their bodies are read as bytes: signatures are over these. */
export async function addHookOperations(app: App, options: ApiOptions): Promise<void> {
  const services: HookServices = {
    triggers: createReceivingTriggers(options.database, options.vault),
    connections: createDeliveringConnections(options.database, options.vault),
    admit: createAdmission(options),
    rates: createDeliveryRates(options),
  };
  await app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, parsed) => parsed(null, body));
    addTriggerHook(scope, options, services);
    addForgeHook(scope, options, services);
    done();
  });
}

function addTriggerHook(app: App, options: ApiOptions, services: HookServices): void {
  app.post(
    "/hook/:triggerId",
    {
      config: { operation: { scope: null, delivers: true } },
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
      return send(options, reply, await receiveForTrigger(options, services, triggerId, { request, reply }));
    },
  );
  app.options(
    "/hook/:triggerId",
    { schema: { hide: true, params: z.object({ triggerId: z.string() }) } },
    (request, reply) =>
      reply
        .status(204)
        .headers({ ...consentTo(headersOf(request), options.deliveriesPerMinute) })
        .send(),
  );
}

/** A trigger may be changed while a delivery is taken in, so often before its sender is asked to come again. */
const mostChanges = 5;

async function receiveForTrigger(
  options: ApiOptions,
  { triggers, admit, rates }: HookServices,
  triggerId: string,
  {
    request,
    reply,
  }: {
    readonly request: FastifyRequest<{ Querystring: { access_token?: string | undefined } }>;
    readonly reply: FastifyReply;
  },
): Promise<Answer> {
  const now = Date.now();
  const delivery = withToken(deliveryOf(request), request.query.access_token);
  const traceParent = request.span?.traceParent ?? null;
  const known = isUuid(triggerId) ? await triggers.find(triggerId) : null;
  let { found, isFresh } = known ?? { found: null, isFresh: true };
  for (let changes = 0; changes < mostChanges; changes += 1) {
    if (found === null) throw new NotFoundError(`trigger ${triggerId.slice(0, 100)} was not found`);
    const { fireable, version, secretsAt } = found;
    const received = { fireable, version, delivery, secrets: secretsAt(now), now, traceParent };
    const isRight = isSignedDelivery(received);
    // A cached trigger may be used to accept a delivery, which is checked again when it is written: never to refuse
    // one.
    const mayBeKept = isRight && fireable.trigger.type === "webhook";
    if (isFresh || mayBeKept) {
      requireSigned(options, isRight, () => rates.takeRefused(triggerId, reply));
      if (changes === 0) (isSigned(fireable.trigger) ? rates.takeSigned : rates.takeUnsigned)(triggerId, reply);
      const handshake = handshakeOf(received);
      if (handshake !== null) return handshake;
      if (changes === 0) await admit(fireable.organizationId);
      const answer = await deliverToTrigger(options, received);
      if (answer !== null) return answer;
    }
    found = await triggers.findFresh(triggerId);
    isFresh = true;
  }
  throw new UnavailableError("the trigger of this address is being changed: send the delivery again", 1);
}

function addForgeHook(app: App, options: ApiOptions, services: HookServices): void {
  app.post(
    "/hook/forge/:connectionId",
    {
      config: { operation: { scope: null, delivers: true } },
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
      return send(options, reply, await receiveForConnection(options, services, connectionId, { request, reply }));
    },
  );
}

async function receiveForConnection(
  options: ApiOptions,
  { connections, admit, rates }: HookServices,
  connectionId: string,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<Answer> {
  const { inserts } = options;
  const delivery = deliveryOf(request);
  const isRight = (by: DeliveringConnection | null): boolean =>
    by !== null && forgeReader(by.kind)?.verify(delivery, by.secrets, Date.now()) === true;
  let found = isUuid(connectionId) ? await connections.find(connectionId) : null;
  let isProven = isRight(found);
  if (found !== null && !isProven) {
    // A cached connection may be used to accept a delivery: never to refuse one.
    found = await connections.findFresh(connectionId);
    isProven = isRight(found);
  }
  const reader = found === null ? null : forgeReader(found.kind);
  if (found === null || reader === null) {
    throw new NotFoundError(`connection ${connectionId.slice(0, 100)} was not found, or its forge delivers no events`);
  }
  const { organizationId, mention } = found;
  requireSigned(options, isProven, () => rates.takeRefused(connectionId, reply));
  rates.takeSigned(connectionId, reply);
  const handshake = reader.handshake?.(delivery) ?? null;
  if (handshake !== null) return handshake;
  await admit(organizationId);
  const { deliveryId, events: read } = reader.read(delivery);
  const events = found.kind === "azure" ? read.map((each) => asConnected(each, found)) : read;
  await askForPushedFiles(options, organizationId, events);
  const traceParent = request.span?.traceParent ?? null;
  const shared = { organizationId, connectionId, scope: connectionId, deliveryId, traceParent };
  const nothing = { name: null, contentKey: null, sharesKey: false, state: undefined, subject: null };
  const listed = events.length > 0 ? events : [{ ...nothing, event: readWebhook(delivery) }];
  const received = listed.map(({ name, contentKey, sharesKey = false, state, subject, event }, index) => {
    const keys = eventKeys(deliveryId, contentKey, index);
    const steering = name === null ? null : steeringHintOf(event as unknown as ForgeEvent, mention ?? options.mention);
    const content = {
      keys,
      contentKey,
      sharesKey,
      state,
      name,
      subject,
      payload: storablePayload(event),
      keepsPayload: index === 0,
      steering,
    };
    return { ...shared, ...content, id: newId() };
  });
  // Of one turn of the event loop, so they are written together.
  return foremost(await Promise.all(received.map((each) => inserts.receive(each))));
}

/** An event of Azure DevOps with what the connection knows: which repository it is about, and whose account is the connection's own. */
function asConnected(delivered: InboundEvent, { workItemRepositories, own }: DeliveringConnection): InboundEvent {
  return withNameOf(inRepositoryOf(delivered, workItemRepositories), own);
}

/**
 * Requests a read of automation files if the delivery is about a push, also about one that was delivered before: a
 * second read does no harm.
 */
async function askForPushedFiles(
  { database, repositoryKeyOf }: ApiOptions,
  organizationId: string,
  events: readonly InboundEvent[],
): Promise<void> {
  const push = events.find(({ name }) => name === "push");
  const { url } = (push?.event["repository"] ?? {}) as { readonly url?: unknown };
  const address = typeof url === "string" ? parseRepositoryUrl(url) : null;
  if (address === null || isAddressProblem(address) || address.local) return;
  await askForSync(database, organizationId, await repositoryKeyOf(address, organizationId));
}

/** Null: the kind of forge, such as plain git, delivers nothing. */
function forgeReader(kind: string): DeliveryReader | null {
  const known = deliveringForges.find((each): each is DeliveringForge => each === kind);
  return known === undefined ? null : readerOf(known);
}

/** Answers a sender, and counts the outcome of its delivery. */
function send({ metrics }: Pick<ApiOptions, "metrics">, reply: FastifyReply, answer: Answer): FastifyReply {
  if (!("outcome" in answer)) return reply.status(200).type(answer.contentType).send(answer.body);
  metrics.deliveryReceived(answer.outcome);
  return reply.status(202).send(answer);
}

/**
 * @param takeRefused counts a delivery that is not signed as it must be
 * @throws UnauthenticatedError for such a one, or TooManyRequestsError if there were too many
 */
function requireSigned({ metrics }: Pick<ApiOptions, "metrics">, isRight: boolean, takeRefused: () => void): void {
  if (isRight) return;
  metrics.deliveryReceived("refused");
  takeRefused();
  throw new UnauthenticatedError(
    "the delivery's signature is missing or wrong: send it with the secret of this address",
  );
}

/** The request as its sender made it. */
function deliveryOf(request: FastifyRequest): InboundDelivery {
  return { headers: headersOf(request), body: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0) };
}

function headersOf({ headers }: FastifyRequest): InboundDelivery["headers"] {
  // Nearly none is a list: the others need no copy.
  if (!Object.values(headers).some(Array.isArray)) return headers as InboundDelivery["headers"];
  const single = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(", ") : value,
  ]);
  return Object.fromEntries(single) as InboundDelivery["headers"];
}

/** Some senders can put their token into the address alone (RFC 6750, section 2.3). */
function withToken(delivery: InboundDelivery, token: string | undefined): InboundDelivery {
  if (token === undefined || delivery.headers["authorization"] !== undefined) return delivery;
  return { ...delivery, headers: { ...delivery.headers, authorization: `Bearer ${token}` } };
}
