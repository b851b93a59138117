import { once } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Database } from "../../database/database.ts";
import { OffstageError } from "../../domain/errors/errors.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { listEvents } from "../../store/sessions/events.ts";
import { getSession } from "../../store/sessions/sessions.ts";
import { authenticate } from "../http/auth.ts";
import type { ApiOptions } from "../http/context.ts";

/** Proxies close a connection that is quiet for about a minute. */
const usualHeartbeatMs = 15_000;
const pageSize = 200;

const connected = Buffer.from(": connected\n\n");
const beat = Buffer.from(": heartbeat\n\n");

/** Streams events of sessions to clients. */
export interface EventStreams {
  /** Streams a session's events after number `after`, until the session has ended or the client disconnects. */
  stream(
    request: FastifyRequest,
    reply: FastifyReply,
    session: { organizationId: string; id: string },
    after: number,
  ): Promise<void>;
  /** Ends every stream, so that the server can stop. */
  close(): Promise<void>;
}

/**
 * Makes Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html). One LISTEN of the
 * process wakes all streams. They read events from the database by number, so that none is lost or sent twice.
 */
export async function createEventStreams(
  options: Pick<ApiOptions, "database" | "metrics" | "signInDays" | "heartbeatMs">,
): Promise<EventStreams> {
  const { database, metrics, heartbeatMs = usualHeartbeatMs } = options;
  const wakers = new Map<string, Set<() => void>>();
  const open = new Set<AbortController>();
  const reads = createSharedReads(database);
  const subscription = await database.listen("offstage_event", (sessionId) => {
    // A stream that this notification wakes must not get a result that was read before it.
    reads.forget(sessionId);
    if (sessionId === "") for (const all of wakers.values()) for (const wake of all) wake();
    else for (const wake of wakers.get(sessionId) ?? []) wake();
  });

  async function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    { organizationId, id }: { organizationId: string; id: string },
    after: number,
  ): Promise<void> {
    const ended = new AbortController();
    open.add(ended);
    metrics.streamOpened();
    const bell = createBell(wakers, id);
    ended.signal.addEventListener("abort", bell.ring, { once: true });
    reply.hijack();
    request.isStream = true;
    const { raw } = reply;
    // The body ends with the connection, so that what is written to all watchers is one buffer, without a frame for each.
    raw.removeHeader("transfer-encoding");
    raw.once("close", () => ended.abort());
    // The client may have disconnected while the key was checked; then no "close" event follows.
    if (raw.closed) ended.abort();
    raw.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      "content-type": "text/event-stream; charset=utf-8",
      // Proxies that buffer responses would delay the events.
      "x-accel-buffering": "no",
      // A connection kept alive for another request would delay the server's stop until the keep-alive timeout.
      connection: "close",
    });
    raw.write(connected);
    let isInDoubt = false;
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
        isInDoubt = false;
        const { over, events, last, more } = await reads.current(organizationId, id, sent);
        if (events.length > 0) raw.write(events);
        sent = last;
        // If the client reads slowly, no more than one page waits in memory.
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
      bell.remove();
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
    stream,
    async close() {
      for (const ended of open) ended.abort();
      await subscription.close();
    },
  };
}

interface Read {
  readonly over: boolean;
  /** In the format of Server-Sent Events: one buffer, which all watchers are sent. */
  readonly events: Buffer;
  /** Number of the last event. */
  readonly last: number;
  readonly more: boolean;
}

/** Reads and formats the same events only once if many clients ask for them at the same time. */
function createSharedReads(database: Database) {
  const underWay = new Map<string, Map<number, Promise<Read>>>();

  async function read(organizationId: string, id: string, after: number): Promise<Read> {
    // Read the status before the events: then the events include everything that led to the end.
    const over = isFinal((await getSession(database, organizationId, id))?.status ?? "cancelled");
    const page = await listEvents(database, organizationId, id, after, pageSize);
    const events = page?.events ?? [];
    return {
      over,
      events: Buffer.from(
        events.map((event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
      ),
      last: events.at(-1)?.seq ?? after,
      more: page?.nextCursor != null,
    };
  }

  return {
    /** The events after this number, read after the session's last notification. */
    current(organizationId: string, id: string, after: number): Promise<Read> {
      const reads = underWay.get(id) ?? new Map<number, Promise<Read>>();
      underWay.set(id, reads);
      const known = reads.get(after);
      if (known !== undefined) return known;
      const current = read(organizationId, id, after).finally(() => {
        reads.delete(after);
        if (reads.size === 0 && underWay.get(id) === reads) underWay.delete(id);
      });
      reads.set(after, current);
      return current;
    },
    /** @param id empty: all sessions */
    forget(id: string): void {
      if (id === "") underWay.clear();
      else underWay.delete(id);
    },
  };
}

/** A wake-up signal that also remembers a call to `ring` that came before the call to `rung`. */
function createBell(wakers: Map<string, Set<() => void>>, id: string) {
  let rang = false;
  let answer: (() => void) | null = null;
  const ring = (): void => {
    rang = true;
    answer?.();
  };
  const all = wakers.get(id) ?? new Set();
  wakers.set(id, all.add(ring));
  return {
    ring,
    async rung(): Promise<void> {
      if (!rang) {
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
      }
      rang = false;
      answer = null;
    },
    remove(): void {
      all.delete(ring);
      if (all.size === 0) wakers.delete(id);
    },
  };
}
