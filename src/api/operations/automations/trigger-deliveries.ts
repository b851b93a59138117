import { hash } from "node:crypto";
import type { EventContext } from "../../../domain/automations/automation.ts";
import type { Received } from "../../../domain/automations/trigger.ts";
import { newId } from "../../../domain/fields/new-id.ts";
import { storableJson } from "../../../domain/fields/text.ts";
import type { InboundDelivery } from "../../../inbound/delivery.ts";
import { sources } from "../../../inbound/sources/sources.ts";
import { readWebhook, verifyWebhook, webhookDeliveryId } from "../../../inbound/webhook.ts";
import { noteVerdict, prepareFiring, type Arrival } from "../../../store/automations/firings.ts";
import { refusalOfChain } from "../../../store/automations/own-chain.ts";
import { expressionOf, type FireableTrigger, type TriggerRecord } from "../../../store/automations/triggers.ts";
import type { ApiOptions } from "../../http/context.ts";
import { checkJsonValue, isStorableJson } from "../../http/json-value.ts";

/** A delivery to one trigger. */
export interface TriggerDelivery {
  readonly fireable: FireableTrigger;
  /** Of the trigger, as it was read with its secrets. */
  readonly version: string;
  readonly delivery: InboundDelivery;
  /** Those that count now. */
  readonly secrets: readonly string[];
  /** In ms since the epoch. */
  readonly now: number;
  readonly traceParent: string | null;
}

/** An answer that a sender asks for to know the address. */
export interface AddressHandshake {
  readonly contentType: string;
  readonly body: string;
}

type Services = Pick<ApiOptions, "database" | "inserts" | "templates">;

/** Whether a delivery was signed as its trigger wants it. */
export function isSignedDelivery({ fireable: { trigger }, delivery, secrets, now }: TriggerDelivery): boolean {
  if (trigger.type === "source") return sources[trigger.source].reader.verify(delivery, secrets, now);
  if (trigger.type === "webhook") return verifyWebhook(trigger.verify, delivery, secrets, now);
  throw takesNone(trigger);
}

/** The sender's check of the address in a signed delivery; null if it is none. */
export function handshakeOf({ fireable: { trigger }, delivery }: TriggerDelivery): AddressHandshake | null {
  return trigger.type === "source" ? (sources[trigger.source].reader.handshake?.(delivery) ?? null) : null;
}

/**
 * Takes a signed delivery to a trigger: of a source, each event that the trigger lists.
 * @returns null if the trigger of a webhook was changed meanwhile; nothing was written then
 * @throws InvalidInputError if it is not what its sender documents, or neither JSON nor a form
 */
export function deliverToTrigger(services: Services, received: TriggerDelivery): Promise<Received | null> {
  const { trigger } = received.fireable;
  if (trigger.type === "source") return deliverToSource(services, received, trigger);
  if (trigger.type === "webhook") return deliverToWebhook(services, received, trigger);
  throw takesNone(trigger);
}

const takesNone = ({ type }: TriggerRecord): Error => new Error(`a trigger of type ${type} takes no deliveries`);

async function deliverToWebhook(
  services: Services,
  received: TriggerDelivery,
  { deduplicateBy }: Extract<TriggerRecord, { type: "webhook" }>,
): Promise<Received | null> {
  const { delivery, now, version } = received;
  const deliveryId = webhookDeliveryId(delivery);
  const keys = [
    ...(deliveryId === null ? [] : [`delivery:${deliveryId}`]),
    ...(deduplicateBy === "id" ? [] : sameContentKeys(delivery, now)),
  ];
  const payload = readWebhook(delivery);
  const refusal = await refusalOfChain(services.database, received.fireable, payload);
  return fire(services, received, { payload, deliveryId, keys, ...(refusal !== null && { refusal }) }, version);
}

async function deliverToSource(
  services: Services,
  received: TriggerDelivery,
  trigger: Extract<TriggerRecord, { type: "source" }>,
): Promise<Received> {
  const { delivery } = received;
  const { deliveryId, events } = sources[trigger.source].reader.read(delivery);
  const listed = events.filter(({ name }) => trigger.events.length === 0 || trigger.events.includes(name));
  if (listed.length === 0) {
    const names = events.map(({ name }) => name).join(", ");
    const refusal = names === "" ? "no trigger can listen to it" : `the trigger does not list ${names}`;
    const payload = events[0]?.event ?? readWebhook(delivery);
    return foremost(await fireFresh(services, received, [{ payload, deliveryId, keys: [], refusal }]));
  }
  const arrivals = listed.map(({ name, contentKey, subject, event: payload }, index) => {
    return { payload, deliveryId, keys: eventKeys(deliveryId, contentKey, index), name, subject };
  });
  return foremost(await fireFresh(services, received, arrivals));
}

/** Of several events of one delivery: one that was accepted, else a duplicate, else the first. */
export function foremost(all: readonly Received[]): Received {
  const found =
    all.find(({ outcome }) => outcome === "accepted") ?? all.find(({ outcome }) => outcome === "duplicate") ?? all[0];
  if (found === undefined) throw new Error("a delivery without events has no outcome");
  return found;
}

/**
 * Keys by which a second delivery of an event is recognized: the sender's id of the delivery, and its content. One
 * delivery may have several events, such as the labels that were added at once.
 * @param index of the event in its delivery
 */
export function eventKeys(deliveryId: string | null, contentKey: string | null, index: number): string[] {
  const keys = [
    ...(deliveryId === null ? [] : [`delivery:${deliveryId} ${contentKey ?? index}`]),
    ...(contentKey === null ? [] : [`content:${contentKey}`]),
  ];
  // An index of PostgreSQL takes some 2,700 bytes.
  return keys.map((key) => (key.length <= longestKey ? key : hash("sha256", key, "base64url")));
}

/** Characters of a key as it is; a longer one is hashed. */
const longestKey = 500;

/** The content of a delivery, as it goes to the trigger. */
type Delivered = Omit<Arrival, "id" | "traceParent" | "repositoryIds">;

/** Fires a trigger that was read for this delivery: what it is by now does not matter, as of several events some may have been fired. */
async function fireFresh(
  services: Services,
  received: TriggerDelivery,
  arrivals: readonly Delivered[],
): Promise<Received[]> {
  const all: Received[] = [];
  for (const arrival of arrivals) {
    const fired = await fire(services, received, arrival, null);
    if (fired !== null) all.push(fired);
  }
  return all;
}

/**
 * Evaluates the trigger with an event, and fires it.
 * @param version that the trigger must still have; null: any
 * @returns null if it has another
 */
async function fire(
  { database, inserts, templates }: Services,
  { fireable, traceParent }: TriggerDelivery,
  arrival: Delivered,
  version: string | null,
): Promise<Received | null> {
  const payload = storablePayload(arrival.payload);
  const verdict = await templates.evaluateOne(
    expressionOf(fireable.trigger),
    { event: payload, repository: null },
    { organizationId: fireable.organizationId, id: fireable.id },
  );
  const event = { ...arrival, payload, id: newId(), traceParent };
  const fired = await inserts.fire(prepareFiring(fireable, verdict, event, version));
  if (fired === null) return null;
  await noteVerdict(database.pool, fireable, verdict);
  return { outcome: fired.outcome, ledgerId: fired.ledgerId };
}

/** Time within which an equal body is the same delivery, in ms; at most twice as long. */
const sameContentMs = 60_000;

/**
 * Keys of what a delivery says: its body, in this minute and the next. So a sender that tries again at once, perhaps under another id, is
 * distinguished from one that says the same later.
 */
function sameContentKeys({ body }: InboundDelivery, now: number): string[] {
  const digest = hash("sha256", body, "base64url");
  const minute = Math.floor(now / sameContentMs);
  return [minute, minute + 1].map((each) => `content:${digest}:${each}`);
}

/** The payload as the database can store it: a sender can't change it. @throws InvalidInputError if it is nested too deep, or too large */
export function storablePayload(given: EventContext): EventContext {
  if (isStorableJson(given, "the body")) return given;
  const payload = JSON.parse(storableJson(given)) as EventContext;
  checkJsonValue(payload, "the body");
  return payload;
}
