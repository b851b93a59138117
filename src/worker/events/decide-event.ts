import type { Decision } from "../../domain/automations/ledger.ts";
import type { ForgeEvent } from "../../domain/automations/forge-event.ts";
import { longestChain } from "../../domain/automations/trigger.ts";
import { limitsWith } from "../../domain/conversations/conversation.ts";
import { steeringHintOf } from "../../domain/conversations/steering-hint.ts";
import { TooManyRequestsError, UnavailableError } from "../../domain/errors/errors.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import {
  decideEvent,
  filterEvent,
  postponeEvent,
  renewEvent,
  type ClaimedEvent,
  type Steered,
} from "../../store/automations/claimed-events.ts";
import { UnansweredError } from "../conversations/ask-forge.ts";
import { calledAutomation, decideInConversation } from "../conversations/decide-conversation.ts";
import type { ConversationServices } from "../conversations/occasion.ts";
import { asOfOffstage, isOwnStatus, isOwnWords, eventOriginOf, ownWords } from "./event-origin.ts";
import { decideAll, usualLeaseMs, type TriggerDecisions } from "./decide-triggers.ts";
import { recordForgeState } from "./record-forge-state.ts";
import { asTheServer, eventPlaceOf, type EventPlace, type PlaceServices } from "./event-place.ts";

/** Pauses of an event that could not be decided for a reason that passes, in ms. */
const pauses = { fromMs: 5_000, toMs: 300_000, jitter: 0.2 };

/** Dependencies for deciding events. */
export interface EventDecisions extends TriggerDecisions, PlaceServices {
  /** The worker's id. */
  readonly worker: string;
  /** The services of conversations; omitted: events steer no session. */
  readonly conversations?: ConversationServices;
}

/**
 * Decides the effects of an event: in its conversation, and by the triggers that listen to it. If that fails for a
 * passing reason, the event is put off.
 */
export async function decideClaimed(options: EventDecisions, event: ClaimedEvent): Promise<void> {
  const { database, logger } = options;
  try {
    await whileHeld(options, event, () => decideHeld(options, event));
  } catch (error) {
    if (!(error instanceof TooManyRequestsError) && !(error instanceof UnavailableError)) throw error;
    const pauseMs = Math.max(backoffMs(event.postponed + 1, pauses), error.retryAfterMs ?? 0);
    const isDead = await postponeEvent(database, event, { pauseMs, why: error.message });
    const will = isDead ? "it is given up" : "will retry";
    logger.warn(
      { err: error, eventId: event.id, postponed: event.postponed },
      `could not decide an event now; ${will}`,
    );
  }
}

/**
 * Renews the claim of an event while it is decided: many slow conditions, or several requests to a slow forge, take
 * longer than a lease, and workers would decide it one after the other, and none to its end.
 */
async function whileHeld(
  { database, logger, leaseMs = usualLeaseMs }: EventDecisions,
  event: ClaimedEvent,
  work: () => Promise<void>,
): Promise<void> {
  let renewal = Promise.resolve();
  const timer = setInterval(() => {
    renewal = renewEvent(database, event, leaseMs).then(
      () => undefined,
      (error: unknown) => logger.warn({ err: error, eventId: event.id }, "could not keep an event that is decided"),
    );
  }, leaseMs / 3);
  try {
    await work();
  } finally {
    clearInterval(timer);
    // The caller may put the event off: no renewal may set its due time after that.
    await renewal;
  }
}

async function decideHeld(options: EventDecisions, event: ClaimedEvent): Promise<void> {
  const { database } = options;
  const place = await eventPlaceOf(options, event);
  if (await isOwnStatus(database, event, place)) return filterEvent(database, event, ownWords);
  await recordForgeState(database, event, place);
  const steered = await steer(options, event, place).catch(async (error: unknown) => {
    // They need no forge: they neither wait for it nor are given up with what does. But those of an automation that is called by its
    // macro do: it has one run of the event.
    if (error instanceof UnansweredError)
      await decideTriggers(options, event, place, await calledIn(options, event, place));
    throw error;
  });
  const decided = await decideTriggers(options, event, place, steered?.calledId ?? null);
  if (decided === null) return;
  if (typeof decided !== "string") {
    await decideEvent(database, event, decided, steered);
    return;
  }
  const outcome = steered?.outcome === "fired" || decided === ownWords ? steered : null;
  const nothing = { outcome: "filtered", reason: decided, sessionId: null, calledId: null } as const;
  await decideEvent(database, event, [], outcome ?? nothing);
}

/**
 * Decides which triggers start a run, as often as it takes: what was started stays.
 * @param calledId the automation that is called by its macro, whose run is started by that
 * @returns a reason if none may; null if another worker has claimed the event meanwhile
 */
async function decideTriggers(
  options: EventDecisions,
  event: ClaimedEvent,
  place: EventPlace | null,
  calledId: string | null,
): Promise<Decision[] | string | null> {
  const { database } = options;
  if (await isOwnWords(database, event, place)) return ownWords;
  const { isOwnDeed, ...led } = await eventOriginOf(database, event, place);
  if (led.depth > longestChain) return `it ends a chain of ${longestChain} runs of which each started the next`;
  const payload = isOwnDeed ? asOfOffstage(event) : event.payload;
  return decideAll(options, { ...event, ...led, payload }, place, calledId);
}

function calledIn(
  { conversations }: EventDecisions,
  event: ClaimedEvent,
  place: EventPlace | null,
): Promise<string | null> {
  if (conversations === undefined || place === null) return Promise.resolve(null);
  return calledAutomation(conversations, event, place.calling);
}

/** The outcome of an event in its conversation; null: it has none. */
async function steer(
  { conversations }: EventDecisions,
  event: ClaimedEvent,
  place: EventPlace | null,
): Promise<Steered | null> {
  if (conversations === undefined) return null;
  if (place?.isAllowed === true && place.known !== null)
    return decideInConversation(conversations, event, place.known, place.calling);
  // The reason for a person who calls Offstage in a place in which it does not work.
  const { mention } = limitsWith(conversations.limits, place?.calling ?? asTheServer);
  return isCalledBy(event, mention)
    ? { outcome: "filtered", reason: whyNotThere(place), sessionId: null, calledId: null }
    : null;
}

function isCalledBy({ connectionId, payload }: ClaimedEvent, mention: string): boolean {
  return connectionId !== null && steeringHintOf(payload as unknown as ForgeEvent, mention)?.isCalled === true;
}

function whyNotThere(place: EventPlace | null): string {
  if (place === null) return "it names no repository of the connection's forge, so nobody can call Offstage there";
  if (!place.isAllowed)
    return "the organization does not allow the event's repository, so nobody can call Offstage there";
  return "the event's repository is not connected: connect it, so that Offstage can be called there";
}
