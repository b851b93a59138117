import { setTimeout as pause } from "node:timers/promises";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createTokenBucket } from "../../domain/time/token-bucket.ts";

/** Maximum characters of a message's text joined in one waiting event. */
const joinedLength = 20_000;

/** Events at once, and `perSecond` more in each second: each is a transaction, and no ordinary agent sends as many. */
const burst = 100;
const perSecond = 20;

interface Waiting {
  event: NewEvent;
  readonly stored: PromiseWithResolvers<void>;
}

/**
 * Emits events one after the other. While the database is slow, waiting events are merged: text of one message is
 * joined, and a newer state replaces an older one of the same object.
 */
export function createEventQueue(emit: (event: NewEvent) => Promise<void>) {
  const waiting: Waiting[] = [];
  let draining: Promise<void> | null = null;
  const pace = createTokenBucket(burst, perSecond);
  let lost: { readonly error: unknown } | null = null;

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      // Events that arrive during the wait are merged with those that wait.
      const waitMs = lost === null ? pace.take() : 0;
      if (waitMs > 0) await pause(waitMs);
      const next = waiting.shift();
      if (next === undefined) break;
      try {
        if (lost !== null) throw lost.error;
        await emit(next.event);
        next.stored.resolve();
      } catch (error) {
        lost ??= { error };
        next.stored.reject(error);
      }
    }
    draining = null;
  }

  return {
    /** @returns a promise that settles when the event is stored @throws errors of emitting it, or one before it */
    push(event: NewEvent): Promise<void> {
      const last = waiting.at(-1);
      const joined = last === undefined ? null : join(last.event, event);
      if (last !== undefined && joined !== null) {
        last.event = joined;
        return last.stored.promise;
      }
      const stored = Promise.withResolvers<void>();
      // The caller that awaits it, or `settled`, handles the error.
      stored.promise.catch(() => undefined);
      waiting.push({ event, stored });
      draining ??= drain();
      return stored.promise;
    },
    /** Settles when at most `most` events wait, or none will be emitted any more; never rejects. */
    async hasRoom(most: number): Promise<void> {
      while (waiting.length > most && lost === null) await waiting[0]?.stored.promise.catch(() => undefined);
    },
    failed: () => lost !== null,
    /** @throws errors of emitting an event */
    async settled(): Promise<void> {
      while (draining !== null) await draining;
      if (lost !== null) throw lost.error;
    },
  };
}

/** Merges two consecutive events into one of the same meaning; null if that is impossible. */
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
