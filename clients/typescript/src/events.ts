import { EventSourceParserStream } from "eventsource-parser/stream";
import { OffstageError, pause, strangeAnswer, type Send } from "./send.ts";

/** Options of a session's events. */
export interface EventOptions {
  /** Number of the last event that is known; default 0: all events follow. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Called when the connection is made, and when it is lost. */
  readonly onConnection?: (connected: boolean) => void;
}

/** Pauses before a lost stream is asked for again, in ms. */
const firstPauseMs = 200;
const longestPauseMs = 10_000;

/**
 * A session's events in order, each once, until the session has ended. A lost connection is made again from the last event.
 * @throws OffstageError if the server refuses, so that asking again would not help
 */
export async function* streamEvents<Event extends { readonly seq: number }>(
  send: Send,
  id: string,
  { after = 0, signal, onConnection }: EventOptions = {},
): AsyncGenerator<Event, void, undefined> {
  let seen = after;
  let isKnown = false;
  for (let failures = 0; signal?.aborted !== true; failures += 1) {
    try {
      const response = await send({
        method: "GET",
        path: `/session/${encodeURIComponent(id)}/events`,
        // What fails here is asked for again from the last event, below.
        isIdempotent: false,
        headers: { Accept: "text/event-stream", "Last-Event-ID": String(seen) },
        ...(signal !== undefined && { signal }),
      });
      // Once there was a stream, it is a page of something before the server, which will be back.
      if (!isKnown && response.headers.get("content-type")?.startsWith("text/event-stream") !== true)
        throw new OffstageError(response.status, strangeAnswer);
      isKnown = true;
      onConnection?.(true);
      for await (const { event, data } of messages(response)) {
        failures = 0;
        if (event === "end") return;
        if (data === "") continue;
        const parsed = JSON.parse(data) as Event;
        if (parsed.seq <= seen) continue;
        seen = parsed.seq;
        yield parsed;
      }
    } catch (error) {
      const isFinal = error instanceof OffstageError && error.status > 0 && error.status < 500 && error.status !== 429;
      if (isFinal || aborted(signal)) throw error;
    }
    onConnection?.(false);
    await pause(Math.min(longestPauseMs, firstPauseMs * 2 ** failures) * (1 + Math.random()), signal);
  }
}

/** A function, because the compiler would otherwise take it that nothing changed since the last look. */
function aborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

async function* messages({ body }: Response) {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
