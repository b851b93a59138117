import type { FastifyReply, FastifyRequest } from "fastify";
import type { Database } from "../../database/database.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { listEvents } from "../../store/sessions/events.ts";
import { getSession } from "../../store/sessions/sessions.ts";
import type { Streams, StreamPart } from "../http/server-sent-events.ts";

const pageSize = 200;

/** Streams events of sessions to clients. */
export interface EventStreams {
  /** Streams a session's events after number `after`, until the session has ended or the client disconnects. */
  stream(
    request: FastifyRequest,
    reply: FastifyReply,
    session: { organizationId: string; id: string },
    after: number,
  ): Promise<void>;
  /** Unsubscribes from events. */
  close(): Promise<void>;
}

/**
 * Makes streams of sessions' events. One LISTEN of the process wakes all of them. They read events from the database by number, so that
 * none is lost or sent twice.
 */
export async function createEventStreams(database: Database, streams: Streams): Promise<EventStreams> {
  const wakers = new Map<string, Set<() => void>>();
  const reads = createSharedReads(database);
  const subscription = await database.listen("offstage_event", (sessionId) => {
    // A stream that this notification wakes must not get a result that was read before it.
    reads.forget(sessionId);
    if (sessionId === "") for (const all of wakers.values()) for (const wake of all) wake();
    else for (const wake of wakers.get(sessionId) ?? []) wake();
  });

  function watch(id: string, ring: () => void): () => void {
    const all = wakers.get(id) ?? new Set();
    wakers.set(id, all.add(ring));
    return () => {
      all.delete(ring);
      if (all.size === 0) wakers.delete(id);
    };
  }

  return {
    stream: (request, reply, { organizationId, id }, after) =>
      streams.send(
        request,
        reply,
        { watch: (ring) => watch(id, ring), read: (last) => reads.current(organizationId, id, last) },
        after,
      ),
    close: () => subscription.close(),
  };
}

/** Reads and formats the same events only once if many clients ask for them at the same time. */
function createSharedReads(database: Database) {
  const underWay = new Map<string, Map<number, Promise<StreamPart<number>>>>();

  async function read(organizationId: string, id: string, after: number): Promise<StreamPart<number>> {
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
    current(organizationId: string, id: string, after: number): Promise<StreamPart<number>> {
      const reads = underWay.get(id) ?? new Map<number, Promise<StreamPart<number>>>();
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
