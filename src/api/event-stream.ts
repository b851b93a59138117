import { once } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Database } from "../database/database.ts";
import { OffstageError } from "../domain/errors.ts";
import { isFinal } from "../domain/status.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { listEvents } from "../store/events.ts";
import { getSession } from "../store/sessions.ts";
import { authenticate } from "./auth.ts";

/** Proxies close a connection that is quiet for a minute or less. */
const usualHeartbeatMs = 15_000;
const pageSize = 200;

export interface EventStreams {
  /** Streams a session's events after number `after` until the session is over or the client leaves. */
  stream(
    request: FastifyRequest,
    reply: FastifyReply,
    session: { organizationId: string; id: string },
    after: number,
  ): Promise<void>;
  /** Ends every stream, so that the server can close. */
  close(): Promise<void>;
}

/**
 * Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html): one LISTEN for the process,
 * fanned out. What is sent is read from the store by number, so that nothing is lost or sent twice.
 */
export async function createEventStreams(
  database: Database,
  metrics: Pick<Metrics, "streamOpened" | "streamClosed">,
  heartbeatMs = usualHeartbeatMs,
): Promise<EventStreams> {
  const wakers = new Map<string, Set<() => void>>();
  const open = new Set<AbortController>();
  const subscription = await database.listen("offstage_event", (sessionId) => {
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
    raw.once("close", () => ended.abort());
    // Who left before this, while the key was looked up, is told of no more.
    if (raw.closed) ended.abort();
    raw.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      "content-type": "text/event-stream; charset=utf-8",
      // Proxies that gather answers would hold the events back.
      "x-accel-buffering": "no",
      // Kept for a next request, it would hold a server up that stops, for as long as idle connections are kept.
      connection: "close",
    });
    raw.write(": connected\n\n");
    let isInDoubt = false;
    const heartbeat = setInterval(() => {
      raw.write(": heartbeat\n\n");
      // A word can be lost: this look finds what it told of. So it is with who reads: their key or role may have ended.
      isInDoubt = true;
      bell.ring();
    }, heartbeatMs);
    try {
      let sent = after;
      while (!ended.signal.aborted) {
        if (isInDoubt && !(await mayStillRead(request))) break;
        isInDoubt = false;
        // Looked at before the events: whatever led to the end is among them then.
        const over = isFinal((await getSession(database, organizationId, id))?.status ?? "cancelled");
        const page = await listEvents(database, organizationId, id, sent, pageSize);
        for (const event of page?.events ?? []) {
          raw.write(`id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
          sent = event.seq;
        }
        // Of what a slow reader does not take, no more than a page stays in memory.
        if (raw.writableNeedDrain) await once(raw, "drain", { signal: ended.signal });
        if (page?.nextCursor != null) continue;
        if (over) {
          raw.write("event: end\ndata: {}\n\n");
          break;
        }
        await bell.rung();
      }
    } catch (error) {
      if (!ended.signal.aborted)
        request.log.warn({ err: error }, "an event stream broke off; the client will come back");
    } finally {
      clearInterval(heartbeat);
      bell.remove();
      open.delete(ended);
      metrics.streamClosed();
      raw.end();
    }
  }

  /** Asked as at the beginning: where not, the client that comes back is told why. */
  async function mayStillRead(request: FastifyRequest): Promise<boolean> {
    const { operation } = request.routeOptions.config;
    try {
      if (operation !== undefined) await authenticate(database, request, operation);
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

/** Remembers a ring that came while nobody waited. */
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
