import { eventContextSchema, type EventContext } from "../../domain/automations/automation.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import type { AutomationTexts } from "../texts/automations.ts";

/** A text that is no event. */
export class NoEvent extends Error {}

/**
 * Parses an event that the user wrote as JSON; an empty text is the empty event. @throws NoEvent with a sentence for
 * its field
 */
export function eventOf(text: string, texts: AutomationTexts): EventContext {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    throw new NoEvent(texts.noJson(messageOf(error)), { cause: error });
  }
  const event = eventContextSchema.safeParse(value);
  if (!event.success) throw new NoEvent(texts.event.noObject);
  return event.data;
}
