import { TooManyRequestsError, UnavailableError } from "../../domain/errors/errors.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import {
  decideEvent,
  filterEvent,
  postponeEvent,
  type ClaimedEvent,
  type Steered,
} from "../../store/automations/inbound-events.ts";
import { decideInConversation } from "../conversations/decide-conversation.ts";
import type { ConversationServices } from "../conversations/occasion.ts";
import { asOfOffstage, isOwnWords, longestChain, originOf, ownWords } from "./event-origin.ts";
import { decideAll, type TriggerDecisions } from "./decide-triggers.ts";
import { noteTold } from "./note-told.ts";
import { placeOf, type Place, type PlaceServices } from "./event-place.ts";

/** Pauses of an event that could not be decided for a reason that passes, in ms. */
const pauses = { fromMs: 5_000, toMs: 300_000, jitter: 0.2 };

/** What deciding events needs. */
export interface EventDecisions extends TriggerDecisions, PlaceServices {
  /** The worker's id. */
  readonly worker: string;
  /** What steers sessions; omitted: nothing does. */
  readonly conversations?: ConversationServices;
}

/**
 * Decides what comes of an event: in the conversation that it belongs to, and by the triggers that listen to it. If that can't be known
 * for a reason that passes, the event is put off.
 */
export async function decideClaimed(options: EventDecisions, event: ClaimedEvent): Promise<void> {
  const { database, logger } = options;
  try {
    const place = await placeOf(options, event);
    await noteTold(database, event, place);
    const steered = await steer(options, event, place);
    if (await isOwnWords(database, event, place)) {
      await decideEvent(database, event, [], steered ?? { outcome: "filtered", reason: ownWords, sessionId: null });
      return;
    }
    const origin = await originOf(database, event);
    if (origin.depth > longestChain && steered?.outcome !== "fired") {
      await filterEvent(database, event, `it ends a chain of ${longestChain} runs of which each started the next`);
      return;
    }
    const { isOwnDeed, ...led } = origin;
    const payload = isOwnDeed ? asOfOffstage(event) : event.payload;
    if (led.depth > longestChain) await decideEvent(database, event, [], steered);
    else await decideAll(options, { ...event, ...led, payload }, place, steered);
  } catch (error) {
    if (!(error instanceof TooManyRequestsError) && !(error instanceof UnavailableError)) throw error;
    const pauseMs = Math.max(backoffMs(event.postponed + 1, pauses), (error.retryAfterSeconds ?? 0) * 1_000);
    const isDead = await postponeEvent(database, event, { pauseMs, why: error.message });
    const will = isDead ? "it is given up" : "will retry";
    logger.warn(
      { err: error, eventId: event.id, postponed: event.postponed },
      `could not decide an event now; ${will}`,
    );
  }
}

/** What comes of an event in the conversation that it belongs to; null: it belongs to none. */
async function steer(
  { conversations }: EventDecisions,
  event: ClaimedEvent,
  place: Place | null,
): Promise<Steered | null> {
  if (conversations === undefined || place === null || !place.isAllowed || place.known === null) return null;
  return decideInConversation(conversations, event, place.known, place.calling);
}
