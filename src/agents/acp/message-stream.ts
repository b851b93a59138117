import { setImmediate as nextTurn } from "node:timers/promises";
import type { MessageStream } from "./conversation.ts";
import { createLines, requireShape } from "./protocol-lines.ts";

type Message = MessageStream["readable"] extends ReadableStream<infer T> ? T : never;

/** Answers that a harness does not read, before it is no longer heard. */
const unreadLimit = 50;
/** As JSON-RPC 2.0 (section 5.1) says that what is no JSON, and what is no message, is answered. */
const noJson = { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } } as const;
const noMessage = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "Invalid request" } } as const;

/**
 * The protocol's lines as messages. A line is looked through before it is parsed; one after the other is handed on, and the
 * next only while there is room for what comes of it.
 * @param room settles once the next may come
 * @param write to the harness; settles once it was taken
 */
export function createMessageStream(options: {
  readonly write: (bytes: Uint8Array) => Promise<void>;
  readonly room: () => Promise<void>;
}) {
  const linesOf = createLines();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let heard: ReadableStreamDefaultController<Message> | null = null;
  let written = Promise.resolve();
  /** Requests of the harness, answered or not, of which it has not read the answer. */
  let unread = 0;
  let wake = (): void => undefined;

  function write(message: object): Promise<void> {
    written = written.then(() => options.write(encoder.encode(`${JSON.stringify(message)}\n`)));
    written.catch(() => undefined);
    return written;
  }

  function answered(): void {
    unread -= 1;
    wake();
  }

  function answer(message: object): void {
    unread += 1;
    write(message).then(answered, answered);
  }

  function hear(line: Uint8Array): void {
    const text = decoder.decode(line).trim();
    if (text === "") return;
    requireShape(line);
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      answer(noJson);
      return;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      answer(noMessage);
      return;
    }
    if ("method" in message && "id" in message) unread += 1;
    heard?.enqueue(message as Message);
  }

  const readable = new ReadableStream<Message>({ start: (controller) => void (heard = controller) });
  const writable = new WritableStream<Message>({
    async write(message) {
      await write(message);
      if (!("method" in message)) answered();
    },
  });

  return {
    stream: { readable, writable } satisfies MessageStream,
    /** Settles once all that was in these bytes was handed on. @throws ProtocolViolation */
    async take(bytes: Uint8Array): Promise<void> {
      for (const line of linesOf(bytes)) {
        hear(line);
        await options.room();
        while (unread > unreadLimit) await new Promise<void>((resolve) => (wake = resolve));
      }
      await nextTurn();
    },
    /** Nothing comes any more. */
    end(): void {
      heard?.close();
    },
  };
}
