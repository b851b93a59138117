import { eventContextSchema, type EventContext } from "../../domain/automations/automation.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import type { AutomationTexts } from "../texts/automations.ts";

/** A text that is no event. */
export class NoEvent extends Error {}

/** An event that somebody wrote as JSON; nothing at all is the empty event. @throws NoEvent with a sentence for its field */
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
