import { setImmediate as nextTurn } from "node:timers/promises";
import type { MessageStream } from "./conversation.ts";
import { createLines, requireShape } from "./protocol-lines.ts";

type Message = MessageStream["readable"] extends ReadableStream<infer T> ? T : never;

/** Answers that the harness has not read before its output is no longer read. */
const unreadLimit = 50;
/** Answer to invalid JSON and to invalid messages (JSON-RPC 2.0, section 5.1). */
const noJson = { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } } as const;
const noMessage = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "Invalid request" } } as const;

/**
 * Converts the protocol's lines to messages. A line is checked before it is parsed; messages are passed on one by one,
 * the next only when there is room for its events.
 * @param room settles when the next may come
 * @param write to the harness; settles when the bytes were taken
 */
export function createMessageStream(options: {
  readonly write: (bytes: Uint8Array) => Promise<void>;
  readonly room: () => Promise<void>;
}) {
  const linesOf = createLines();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let incoming: ReadableStreamDefaultController<Message> | null = null;
  let written = Promise.resolve();
  /** Requests of the harness, answered or not, whose answer it has not read. */
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

  function takeLine(line: Uint8Array): void {
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
    incoming?.enqueue(message as Message);
  }

  const readable = new ReadableStream<Message>({ start: (controller) => void (incoming = controller) });
  const writable = new WritableStream<Message>({
    async write(message) {
      await write(message);
      if (!("method" in message)) answered();
    },
  });

  return {
    stream: { readable, writable } satisfies MessageStream,
    /** Settles when all messages in these bytes were passed on. @throws ProtocolViolation */
    async take(bytes: Uint8Array): Promise<void> {
      for (const line of linesOf(bytes)) {
        takeLine(line);
        await options.room();
        while (unread > unreadLimit) await new Promise<void>((resolve) => (wake = resolve));
      }
      await nextTurn();
    },
    /** The harness's output has ended. */
    end(): void {
      incoming?.close();
    },
  };
}
