import { once } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import { OffstageError } from "../../domain/errors/errors.ts";
import { authenticate } from "./auth.ts";
import type { ApiOptions } from "./context.ts";

/** Proxies close a connection that is quiet for about a minute. */
const usualHeartbeatMs = 15_000;

const connected = Buffer.from(": connected\n\n");
const beat = Buffer.from(": heartbeat\n\n");

/** The next part of a stream. */
export interface StreamPart<Position> {
  /** In the format of Server-Sent Events: one buffer, which all who are at the same position are sent. */
  readonly events: Buffer;
  /** The stream's position after these. */
  readonly last: Position;
  /** Whether more is there already. */
  readonly more: boolean;
  /** Whether nothing follows any more. */
  readonly over: boolean;
}

/** The source of a stream. */
export interface StreamSource<Position> {
  /** Calls `ring` whenever there may be more to read. @returns a function that ends that */
  watch(ring: () => void): () => void;
  read(after: Position): Promise<StreamPart<Position>>;
}

/** Sends streams of Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface Streams {
  /** Sends what comes after a position, until it is over or the client disconnects. */
  send<Position>(
    request: FastifyRequest,
    reply: FastifyReply,
    source: StreamSource<Position>,
    after: Position,
  ): Promise<void>;
  /** Ends every stream, so that the server can stop. */
  close(): void;
}

/** Makes the streams of a server. */
export function createStreams(
  options: Pick<ApiOptions, "database" | "metrics" | "signInDays" | "findPrincipal" | "heartbeatMs">,
): Streams {
  const { metrics, heartbeatMs = usualHeartbeatMs } = options;
  const open = new Set<AbortController>();

  async function send<Position>(
    request: FastifyRequest,
    reply: FastifyReply,
    source: StreamSource<Position>,
    after: Position,
  ): Promise<void> {
    const ended = new AbortController();
    open.add(ended);
    metrics.streamOpened();
    const bell = createBell();
    const unwatch = source.watch(bell.ring);
    ended.signal.addEventListener("abort", bell.ring, { once: true });
    const raw = beginStream(request, reply);
    raw.once("close", () => ended.abort());
    // The client may have disconnected while the key was checked; then no "close" event follows.
    if (raw.closed) ended.abort();
    raw.write(connected);
    // A link is checked again before each further part, so that revoking it ends its streams.
    const isByLink = request.principal?.shareId !== undefined;
    let isInDoubt = isByLink;
    const heartbeat = setInterval(() => {
      raw.write(beat);
      // A notification can be lost: this also polls for its events. It also checks that the key or role is still
      // valid.
      isInDoubt = true;
      bell.ring();
    }, heartbeatMs);
    try {
      let sent = after;
      while (!ended.signal.aborted) {
        if (isInDoubt && !(await mayStillRead(request))) break;
        isInDoubt = isByLink;
        const { over, events, last, more } = await source.read(sent);
        if (events.length > 0) raw.write(events);
        sent = last;
        // If the client reads slowly, no more than one part waits in memory.
        if (raw.writableNeedDrain) await once(raw, "drain", { signal: ended.signal });
        if (more) continue;
        if (over) {
          raw.write("event: end\ndata: {}\n\n");
          break;
        }
        await bell.rung();
      }
    } catch (error) {
      if (!ended.signal.aborted)
        request.log.warn({ err: error }, "event stream ended early; the client will reconnect");
    } finally {
      clearInterval(heartbeat);
      unwatch();
      open.delete(ended);
      metrics.streamClosed();
      raw.end();
    }
  }

  /** Repeats the check of the first request. If it fails, the client learns the reason when it reconnects. */
  async function mayStillRead(request: FastifyRequest): Promise<boolean> {
    const { operation } = request.routeOptions.config;
    try {
      if (operation !== undefined) await authenticate(options, request, operation);
      return true;
    } catch (error) {
      if (error instanceof OffstageError) return false;
      throw error;
    }
  }

  return {
    send,
    close() {
      for (const ended of open) ended.abort();
    },
  };
}

/** Whether a request asks for a stream. */
export function wantsStream({ headers, method }: FastifyRequest): boolean {
  return method !== "HEAD" && headers.accept?.includes("text/event-stream") === true;
}

function beginStream(request: FastifyRequest, reply: FastifyReply) {
  reply.hijack();
  request.isStream = true;
  const { raw } = reply;
  // The body ends with the connection, so that what is written to all watchers is one buffer, without a frame for each.
  raw.removeHeader("transfer-encoding");
  raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    "content-type": "text/event-stream; charset=utf-8",
    // Proxies that buffer responses would delay the events.
    "x-accel-buffering": "no",
    // A connection kept alive for another request would delay the server's stop until the keep-alive timeout.
    connection: "close",
  });
  return raw;
}

/** A wake-up signal that also remembers a call to `ring` that came before the call to `rung`. */
function createBell() {
  let rang = false;
  let answer: (() => void) | null = null;
  return {
    ring(): void {
      rang = true;
      answer?.();
    },
    async rung(): Promise<void> {
      if (!rang) {
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
      }
      rang = false;
      answer = null;
    },
  };
}
