import { setTimeout as pause } from "node:timers/promises";
import type { NewEvent } from "../../domain/event.ts";
import { createPace } from "../../domain/pace.ts";

/** Characters of one message's text that events which wait are joined up to. */
const joinedLength = 20_000;

/** Events told at once, and in each second after that: each is a transaction, and no agent that means well has so many. */
const burst = 100;
const perSecond = 20;

interface Waiting {
  event: NewEvent;
  readonly told: PromiseWithResolvers<void>;
}

/**
 * Tells events one after the other. Those that wait for a slow store meanwhile are fewer and larger: text of one message is
 * joined, and a newer state of the same thing takes the place of an older one.
 */
export function createEventQueue(emit: (event: NewEvent) => Promise<void>) {
  const waiting: Waiting[] = [];
  let telling: Promise<void> | null = null;
  const pace = createPace(burst, perSecond);
  let lost: { readonly error: unknown } | null = null;

  async function tellAll(): Promise<void> {
    while (waiting.length > 0) {
      // What comes while it waits is joined to what waits.
      const waitMs = lost === null ? pace.next() : 0;
      if (waitMs > 0) await pause(waitMs);
      const next = waiting.shift();
      if (next === undefined) break;
      try {
        if (lost !== null) throw lost.error;
        await emit(next.event);
        next.told.resolve();
      } catch (error) {
        lost ??= { error };
        next.told.reject(error);
      }
    }
    telling = null;
  }

  return {
    /** @returns what settles once the event is stored @throws what telling it, or one before it, threw */
    tell(event: NewEvent): Promise<void> {
      const last = waiting.at(-1);
      const joined = last === undefined ? null : join(last.event, event);
      if (last !== undefined && joined !== null) {
        last.event = joined;
        return last.told.promise;
      }
      const told = Promise.withResolvers<void>();
      // Heard by whoever awaits it, or `settled`.
      told.promise.catch(() => undefined);
      waiting.push({ event, told });
      telling ??= tellAll();
      return told.promise;
    },
    /** Settles once no more than so many wait, or none will be told any more; never rejects. */
    async room(most: number): Promise<void> {
      while (waiting.length > most && lost === null) await waiting[0]?.told.promise.catch(() => undefined);
    },
    failed: () => lost !== null,
    /** @throws what telling an event threw */
    async settled(): Promise<void> {
      while (telling !== null) await telling;
      if (lost !== null) throw lost.error;
    },
  };
}

/** One event that says the same as two in a row; null if there is none. */
function join(before: NewEvent, after: NewEvent): NewEvent | null {
  if (before.type === "agent.tool" && after.type === "agent.tool")
    return before.data.toolCallId === after.data.toolCallId ? after : null;
  if (before.type === "agent.plan" && after.type === "agent.plan") return after;
  if (before.type === "agent.usage" && after.type === "agent.usage")
    return { type: "agent.usage", data: { ...before.data, ...after.data } };
  if (before.type === "agent.message" && after.type === "agent.message") {
    const data = joinedText(before.data, after.data);
    return data === null ? null : { type: "agent.message", data };
  }
  if (before.type === "agent.thought" && after.type === "agent.thought") {
    const data = joinedText(before.data, after.data);
    return data === null ? null : { type: "agent.thought", data };
  }
  return null;
}

interface TextPart {
  readonly part: string;
  readonly text: string;
}

function joinedText(before: TextPart, after: TextPart): TextPart | null {
  const fits = before.part === after.part && before.text.length + after.text.length <= joinedLength;
  return fits ? { part: before.part, text: before.text + after.text } : null;
}
