import { createParser, type EventSourceMessage } from "eventsource-parser";
import { OffstageError } from "./domain/errors/errors.ts";
import { backoffMs } from "./domain/time/backoff.ts";

// A separate module, so that the web app loads it with its first stream and not before its first picture.

/** Pauses before a lost stream is asked for again. */
const reconnecting = { fromMs: 200, toMs: 10_000, jitter: 0.5 };

/** A function, because the compiler would otherwise assume that `aborted` can't have changed since the last check. */
function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** How a stream's requests are sent, and the errors for an answer that refuses one, or is not Offstage's. */
export interface Sent {
  readonly headers: Record<string, string>;
  readonly send: typeof fetch;
  readonly refusal: (response: Response) => Promise<OffstageError>;
  readonly strange: (response: Response) => OffstageError;
}

/** How long a stream is read, and callbacks for its connection. */
interface Reading {
  readonly signal?: AbortSignal;
  /** Called when the connection is made and when it is lost. */
  readonly onConnection?: (connected: boolean) => void;
}

/**
 * The messages of a stream until it says that it has ended, over as many connections as it takes.
 * @throws what `refusal` or `strange` makes of an answer by which a retry would not help
 */
export async function* streamMessages(
  url: string,
  {
    lastId,
    headers,
    send,
    refusal,
    strange,
    signal,
    onConnection,
  }: Sent & Reading & { readonly lastId: string | null },
): AsyncGenerator<EventSourceMessage> {
  let seen = lastId;
  let isKnown = false;
  for (let failures = 0; signal?.aborted !== true; failures += 1) {
    try {
      const response = await send(url, {
        headers: { ...headers, Accept: "text/event-stream", ...(seen !== null && { "Last-Event-ID": seen }) },
        ...(signal !== undefined && { signal }),
      });
      if (!response.ok && response.status < 500 && response.status !== 429) throw await refusal(response);
      if (!response.ok || response.body === null) throw new TypeError(`the server answered ${response.status}`);
      // Once there was a stream, it is a page of something before the server, which will be back.
      if (!isKnown && response.headers.get("Content-Type")?.startsWith("text/event-stream") !== true)
        throw strange(response);
      isKnown = true;
      onConnection?.(true);
      for await (const message of readMessages(response.body)) {
        failures = 0;
        if (message.event === "end") return;
        if (message.data === "") continue;
        yield message;
        // Once it was taken: what was not is sent again.
        seen = message.id ?? seen;
      }
    } catch (error) {
      if (error instanceof OffstageError || isAborted(signal)) throw error;
    }
    onConnection?.(false);
    await pause(backoffMs(failures + 1, reconnecting), signal);
  }
}

/** The messages of an event stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
async function* readMessages(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const messages: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => messages.push(message) });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* messages.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
