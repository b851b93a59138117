import { createHash, randomUUID } from "node:crypto";
import type { EventContext } from "../../domain/automations/automation.ts";
import type { Received } from "../../domain/automations/trigger.ts";
import { storableJson } from "../../domain/fields/text.ts";
import type { Delivery } from "../../inbound/delivery.ts";
import { sources } from "../../inbound/sources/sources.ts";
import { readWebhook, verifyWebhook, webhookDeliveryId } from "../../inbound/webhook.ts";
import { fireTrigger, type Arrival, type Fired } from "../../store/automations/firings.ts";
import { expressionOf, type FireableTrigger, type TriggerRecord } from "../../store/automations/triggers.ts";
import type { ApiOptions } from "../http/context.ts";
import { checkJsonValue, checkNesting } from "../http/json-value.ts";

/** A delivery to one trigger. */
export interface TriggerDelivery {
  readonly fireable: FireableTrigger;
  readonly delivery: Delivery;
  /** Those that count now. */
  readonly secrets: readonly string[];
  /** In ms since the epoch. */
  readonly now: number;
  readonly traceParent: string | null;
  /** @throws UnauthenticatedError if the signature is not right */
  readonly verified: (isRight: boolean) => void;
  /** @throws UnavailableError if the organization's queue is full */
  readonly admitted: () => Promise<void>;
}

type Services = Pick<ApiOptions, "database" | "templates">;

/**
 * Takes a delivery to a webhook.
 * @throws InvalidInputError if it is neither JSON nor a form
 */
export async function deliverToWebhook(services: Services, received: TriggerDelivery): Promise<Received> {
  const { fireable, delivery, secrets, now, verified, admitted } = received;
  const { trigger } = fireable;
  if (trigger.type !== "webhook") throw new Error(`a trigger of type ${trigger.type} takes no deliveries`);
  verified(verifyWebhook(trigger.verify, delivery, secrets, now));
  await admitted();
  const deliveryId = webhookDeliveryId(delivery);
  const keys = deliveryId === null ? sameContentKeys(delivery, now) : [`delivery:${deliveryId}`];
  return fire(services, received, { payload: readWebhook(delivery), deliveryId, keys });
}

/**
 * Takes a delivery of a source that is known by name: each event of it that the trigger lists.
 * @returns the answer; what the source asks for to know the address, if it does
 * @throws InvalidInputError if it is not what the source documents
 */
export async function deliverToSource(
  services: Services,
  received: TriggerDelivery,
  trigger: Extract<TriggerRecord, { type: "source" }>,
): Promise<Received | { readonly contentType: string; readonly body: string }> {
  const { delivery, secrets, now, verified, admitted } = received;
  const { reader } = sources[trigger.source];
  verified(reader.verify(delivery, secrets, now));
  const handshake = reader.handshake?.(delivery) ?? null;
  if (handshake !== null) return handshake;
  await admitted();
  const { deliveryId, events } = reader.read(delivery);
  const listed = events.filter(({ name }) => trigger.events.length === 0 || trigger.events.includes(name));
  if (listed.length === 0) {
    const names = events.map(({ name }) => name).join(", ");
    const refusal =
      names === "" ? "it tells of nothing that triggers can listen to" : `the trigger does not list ${names}`;
    return fire(services, received, {
      payload: events[0]?.event ?? readWebhook(delivery),
      deliveryId,
      keys: [],
      refusal,
    });
  }
  const all: Received[] = [];
  for (const { name, contentKey, subject, event: payload } of listed) {
    const keys = eventKeys(deliveryId, contentKey, all.length);
    all.push(await fire(services, received, { payload, deliveryId, keys, name, subject }));
  }
  return all.find(({ outcome }) => outcome === "accepted") ?? (all[0] as Received);
}

/**
 * What tells a second delivery of an event: the sender's id of the delivery, and what it says. One delivery may tell of several
 * events, such as the labels that were added at once.
 * @param index of the event in its delivery
 */
export function eventKeys(deliveryId: string | null, contentKey: string | null, index: number): string[] {
  const keys = [
    ...(deliveryId === null ? [] : [`delivery:${deliveryId} ${contentKey ?? index}`]),
    ...(contentKey === null ? [] : [`content:${contentKey}`]),
  ];
  // An index of PostgreSQL takes some 2,700 bytes.
  return keys.map((key) => (key.length <= longestKey ? key : createHash("sha256").update(key).digest("base64url")));
}

/** Characters of a key as it is; a longer one is hashed. */
const longestKey = 500;

/** Evaluates the trigger with an event, and fires it. */
async function fire(
  { database, templates }: Services,
  { fireable, traceParent }: TriggerDelivery,
  arrival: Omit<Arrival, "id" | "traceParent"> & { readonly payload: EventContext },
): Promise<Received> {
  const payload = storablePayload(arrival.payload);
  const [verdict] = await templates.evaluate(
    [expressionOf(fireable.trigger)],
    { event: payload, repository: null },
    { organizationId: fireable.organizationId, id: fireable.id },
  );
  const fired: Fired = await fireTrigger(database, fireable, verdict ?? { passes: true, key: null }, {
    ...arrival,
    payload,
    id: randomUUID(),
    traceParent,
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

/** The payload as the database can store it: a sender can't mend it. @throws InvalidInputError if it is nested too deep, or too large */
export function storablePayload(given: EventContext): EventContext {
  checkNesting(given, "the body");
  const payload = JSON.parse(storableJson(given)) as EventContext;
  checkJsonValue(payload, "the body");
  return payload;
}
