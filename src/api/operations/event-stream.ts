import { once } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Database } from "../../database/database.ts";
import { OffstageError } from "../../domain/errors.ts";
import { isFinal } from "../../domain/status.ts";
import { listEvents } from "../../store/sessions/events.ts";
import { getSession } from "../../store/sessions/sessions.ts";
import { authenticate } from "../http/auth.ts";
import type { ApiOptions } from "../http/context.ts";

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
  options: Pick<ApiOptions, "database" | "metrics" | "signInDays" | "heartbeatMs">,
): Promise<EventStreams> {
  const { database, metrics, heartbeatMs = usualHeartbeatMs } = options;
  const wakers = new Map<string, Set<() => void>>();
  const open = new Set<AbortController>();
  const looks = createSharedLooks(database);
  const subscription = await database.listen("offstage_event", (sessionId) => {
    // Whoever is woken by this must not be given what was read before it.
    looks.forget(sessionId);
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
        const { over, events, last, more } = await looks.look(organizationId, id, sent);
        if (events !== "") raw.write(events);
        sent = last;
        // Of what a slow reader does not take, no more than a page stays in memory.
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

interface Look {
  readonly over: boolean;
  /** As they are sent. */
  readonly events: string;
  /** Number of the last of them. */
  readonly last: number;
  readonly more: boolean;
}

/** What many watchers of one session ask at the same time is read, and written out, once for all of them. */
function createSharedLooks(database: Database) {
  const underWay = new Map<string, Map<number, Promise<Look>>>();

  async function read(organizationId: string, id: string, after: number): Promise<Look> {
    // Looked at before the events: whatever led to the end is among them then.
    const over = isFinal((await getSession(database, organizationId, id))?.status ?? "cancelled");
    const page = await listEvents(database, organizationId, id, after, pageSize);
    const events = page?.events ?? [];
    return {
      over,
      events: events
        .map((event) => `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
        .join(""),
      last: events.at(-1)?.seq ?? after,
      more: page?.nextCursor != null,
    };
  }

  return {
    /** The events after this number, by a look that began after the last word of the session. */
    look(organizationId: string, id: string, after: number): Promise<Look> {
      const looks = underWay.get(id) ?? new Map<number, Promise<Look>>();
      underWay.set(id, looks);
      const known = looks.get(after);
      if (known !== undefined) return known;
      const look = read(organizationId, id, after).finally(() => {
        looks.delete(after);
        if (looks.size === 0 && underWay.get(id) === looks) underWay.delete(id);
      });
      looks.set(after, look);
      return look;
    },
    /** @param id empty: of every session */
    forget(id: string): void {
      if (id === "") underWay.clear();
      else underWay.delete(id);
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
