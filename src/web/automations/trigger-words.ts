import type { Trigger } from "../../domain/automations/trigger.ts";
import type { client } from "../query.ts";

/** The address that a trigger's senders post to; null: it has none. */
export function addressOf(trigger: Trigger, macro: string): string | null {
  if (trigger.type === "api") return `${location.origin}/automation/${macro}/trigger`;
  return trigger.type === "webhook" || trigger.type === "source" ? trigger.url : null;
}

/** Triggers as an update takes them. */
export type TriggerList = NonNullable<Parameters<typeof client.automation.update>[1]["triggers"]>;

/** A trigger without what only the server sets. */
export function settable(trigger: Trigger): TriggerList[number] {
  const { problem: _, ...rest } = trigger;
  const {
    url: __,
    secret: ___,
    nextAt: ____,
    hasReplyToken: _____,
    ...given
  } = rest as typeof rest & Record<"url" | "secret" | "nextAt" | "hasReplyToken", unknown>;
  return given as TriggerList[number];
}
