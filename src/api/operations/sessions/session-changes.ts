import { randomBytes } from "node:crypto";
import type { Database } from "../../../database/database.ts";
import type { SessionDetail } from "../../../domain/sessions/session.ts";
import { isFinal } from "../../../domain/sessions/status.ts";
import type { Logger } from "../../../observability.ts";
import { listedChannel, listUnderWay, readSessions } from "../../../store/sessions/changed-sessions.ts";
import type { SessionRecord } from "../../../store/sessions/sessions.ts";
import type { StreamPart, StreamSource } from "../../http/server-sent-events.ts";

/** Changes within this time, in ms, are read together: an agent writes several events a second. */
const gatherMs = 200;
/** How often running sessions are polled, in ms: a notification can be lost. */
const usualLookAgainMs = 30_000;
/** How long an unwatched feed is kept, in ms, for clients that come back. */
const keptForMs = 120_000;
/** The bounds of changes kept for clients that come back, or read slowly. */
const keptAtMost = { changes: 1_000, bytes: 8_000_000 } as const;

/** Position in an organization's feed: the feed's id, and the number of a change. */
export interface FeedPosition {
  readonly feed: string;
  readonly number: number;
}

/** Streams of what changes in organizations' lists of sessions. */
export interface SessionChanges {
  /** The feed of an organization. A client without a position that it still has first gets `reset`. */
  of(organizationId: string): StreamSource<FeedPosition>;
  close(): Promise<void>;
}

/** Options of the streams. */
export interface SessionChangesOptions {
  readonly database: Database;
  readonly logger: Logger;
  /** A session as the API shows it. */
  readonly show: (record: SessionRecord) => SessionDetail;
  /** Milliseconds between two polls of running sessions; default 30,000. */
  readonly lookAgainMs?: number;
}

interface Change {
  readonly number: number;
  readonly bytes: Buffer;
}

/**
 * Makes the feeds, one for each watched organization: changes are read and formatted once for all watchers. They are in
 * memory alone. A client that comes back to another process, or too late, is asked to read the list again (`reset`).
 */
export async function createSessionChanges(options: SessionChangesOptions): Promise<SessionChanges> {
  const { database, logger, show, lookAgainMs = usualLookAgainMs } = options;
  const feeds = new Map<string, Feed>();
  const pending = new Set<string>();
  let gathering: NodeJS.Timeout | null = null;
  let reading: Promise<void> = Promise.resolve();

  function noteChanged(sessionId: string): void {
    if (feeds.size === 0) return;
    pending.add(sessionId);
    gathering ??= setTimeout(() => {
      gathering = null;
      reading = reading.then(readPending);
    }, gatherMs);
  }

  async function readPending(): Promise<void> {
    const ids = [...pending];
    pending.clear();
    try {
      const records = await readSessions(database, [...feeds.keys()], ids);
      for (const record of records) feeds.get(record.organizationId)?.changed(show(record));
    } catch (error) {
      logger.warn({ err: error }, "could not read changed sessions; those who watch lists read them again");
      for (const feed of feeds.values()) feed.reset();
    }
  }

  const subscriptions = [
    await database.listen("offstage_event", (sessionId) => {
      if (sessionId !== "") noteChanged(sessionId);
      else for (const feed of feeds.values()) feed.reset();
    }),
    await database.listen(listedChannel, (payload) => {
      const [organizationId = "", deleted = ""] = payload.split(" ");
      if (deleted !== "") feeds.get(organizationId)?.deleted(deleted);
    }),
  ];
  const lookAgain = setInterval(() => {
    const now = Date.now();
    for (const [organizationId, feed] of feeds) if (feed.isStale(now)) feeds.delete(organizationId);
    if (feeds.size === 0) return;
    void listUnderWay(database, [...feeds.keys()]).then(
      (ids) => {
        for (const id of [...ids, ...[...feeds.values()].flatMap((feed) => feed.underWay())]) noteChanged(id);
      },
      (error: unknown) => logger.warn({ err: error }, "could not look at the sessions under way; will retry"),
    );
  }, lookAgainMs);

  return {
    of(organizationId) {
      const feed = feeds.get(organizationId) ?? createFeed();
      feeds.set(organizationId, feed);
      return feed;
    },
    async close() {
      clearInterval(lookAgain);
      if (gathering !== null) clearTimeout(gathering);
      await Promise.all(subscriptions.map((subscription) => subscription.close()));
      await reading;
    },
  };
}

interface Feed extends StreamSource<FeedPosition> {
  changed(session: SessionDetail): void;
  deleted(id: string): void;
  /** Something may have been missed: everybody has to read the list again. */
  reset(): void;
  /** Sessions that were under way when they were last sent. */
  underWay(): string[];
  /** Whether it has been unwatched for long. @param now in ms */
  isStale(now: number): boolean;
}

function createFeed(): Feed {
  const feed = randomBytes(6).toString("hex");
  const watchers = new Set<() => void>();
  /**
   * Each session as it was last sent, without the time of its last change: a session that is the same to readers is not
   * sent again.
   */
  const sent = new Map<string, { readonly text: string; readonly isUnderWay: boolean }>();
  let kept: Change[] = [];
  let bytes = 0;
  let last = 0;
  let unwatchedSince = Date.now();

  function append(event: string, data: unknown): void {
    last += 1;
    const change = { number: last, bytes: format(last, event, data) };
    kept.push(change);
    bytes += change.bytes.length;
    while (kept.length > keptAtMost.changes || bytes > keptAtMost.bytes) bytes -= kept.shift()?.bytes.length ?? 0;
    for (const ring of watchers) ring();
  }

  const format = (number: number, event: string, data: unknown): Buffer =>
    Buffer.from(`id: ${feed}-${number}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

  function read(after: FeedPosition): StreamPart<FeedPosition> {
    const first = kept[0]?.number ?? last + 1;
    const now = { feed, number: last };
    const isKnown = after.feed === feed && after.number >= first - 1 && after.number <= last;
    const events = isKnown
      ? Buffer.concat(kept.filter(({ number }) => number > after.number).map((change) => change.bytes))
      : format(last, "reset", {});
    return { events, last: now, more: false, over: false };
  }

  return {
    changed(session) {
      const text = JSON.stringify({ ...session, updatedAt: "" });
      if (sent.get(session.id)?.text === text) return;
      sent.delete(session.id);
      sent.set(session.id, { text, isUnderWay: session.status !== "draft" && !isFinal(session.status) });
      if (sent.size > keptAtMost.changes) sent.delete(sent.keys().next().value ?? "");
      append("session", session);
    },
    deleted(id) {
      sent.delete(id);
      append("deleted", { id });
    },
    reset() {
      kept = [];
      bytes = 0;
      sent.clear();
      last += 1;
      for (const ring of watchers) ring();
    },
    underWay: () => [...sent].flatMap(([id, { isUnderWay }]) => (isUnderWay ? [id] : [])),
    isStale: (now) => watchers.size === 0 && now - unwatchedSince > keptForMs,
    watch(ring) {
      watchers.add(ring);
      return () => {
        watchers.delete(ring);
        unwatchedSince = Date.now();
      };
    },
    read: (after) => Promise.resolve(read(after)),
  };
}

/** Reads a position from `id:` of a stream's events; any other text is a position of no feed. */
export function feedPositionOf(text: string | undefined): FeedPosition {
  const [, feed = "", number = 0] = /^([0-9a-f]{12})-(\d{1,15})$/u.exec(text ?? "") ?? [];
  return { feed, number: Number(number) };
}
