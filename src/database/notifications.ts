import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "../observability.ts";
import { keepAlive } from "./keep-alive.ts";

export interface Subscription {
  close(): Promise<void>;
}

export interface Notifications {
  /** Hears a channel. After a lost connection every listener is called with "": look yourself. */
  listen(channel: string, heard: (payload: string) => void): Promise<Subscription>;
  /**
   * Tells every process, after the commit; this one without the way over the database. Never throws, since the slow poll
   * finds what a lost word told of.
   */
  notify(channel: string, payload: string): void;
  close(): Promise<void>;
}

/**
 * Inside a transaction NOTIFY takes a lock that puts all commits in a row, so words go out after it: the first at once,
 * those that come within so long after it gathered.
 */
const gatherMs = 5;
const longestPauseMs = 5_000;

/** LISTEN and NOTIFY over one connection for each process. */
export function createNotifications(pool: pg.Pool, url: string, logger: Logger): Notifications {
  const listeners = new Map<string, Set<(payload: string) => void>>();
  const waiting = new Set<string>();
  let sending: Promise<void> | null = null;
  let client: pg.Client | null = null;
  let connecting: Promise<void> | null = null;
  let closed = false;

  async function connect(): Promise<void> {
    for (let attempt = 0; !closed; attempt += 1) {
      const fresh = new pg.Client({ connectionString: url, ...keepAlive });
      try {
        await fresh.connect();
        const { rows } = await fresh.query<{ own: number }>("select pg_backend_pid() as own");
        fresh.on("notification", ({ channel, payload, processId }) => {
          // What was said over this very connection was heard here when it was said.
          if (processId !== rows[0]?.own) hear(channel, payload ?? "");
        });
        // Not once: a connection that the server ends tells of two errors, and one unheard would end the process.
        fresh.on("error", (error) => lost(fresh, error));
        fresh.once("end", () => lost(fresh, null));
        for (const channel of listeners.keys()) await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
        // Not before: one that is lost until then is tried again here, and nowhere else.
        client = fresh;
        if (attempt > 0) for (const all of listeners.values()) for (const heard of all) heard("");
        return;
      } catch (error) {
        logger.warn({ err: error }, "could not listen on the database; will try again");
        await fresh.end().catch(() => undefined);
        await pause(Math.min(longestPauseMs, 100 * 2 ** attempt));
      }
    }
  }

  function lost(which: pg.Client, error: Error | null): void {
    if (client !== which || closed) return;
    client = null;
    logger.warn({ err: error }, "lost the connection that listens on the database; connecting again");
    connecting = connect().then(() => {
      for (const all of listeners.values()) for (const heard of all) heard("");
    });
  }

  function hear(channel: string, payload: string): void {
    for (const heard of listeners.get(channel) ?? []) heard(payload);
  }

  async function send(): Promise<void> {
    // What one change has to say is said in one turn of the event loop.
    await Promise.resolve();
    while (waiting.size > 0) {
      const words = [...waiting].map((word) => JSON.parse(word) as [string, string]);
      waiting.clear();
      const through = client;
      // Over the pool, where nothing listens here yet or the connection is lost, what is said comes back by itself.
      if (through !== null) for (const [channel, payload] of words) hear(channel, payload);
      // What they ask of the database goes out before the word to the others.
      await nextTurn();
      try {
        await (through ?? pool).query({
          name: "notify",
          text: "select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as word (channel, payload)",
          values: [words.map(([channel]) => channel), words.map(([, payload]) => payload)],
        });
      } catch (error) {
        if (!closed) logger.warn({ err: error }, "could not notify; those who wait will find out by themselves");
      }
      await pause(gatherMs);
    }
  }

  return {
    async listen(channel, heard) {
      const all = listeners.get(channel) ?? new Set();
      listeners.set(channel, all.add(heard));
      if (client === null) await (connecting ??= connect());
      else if (all.size === 1) await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      return {
        close() {
          all.delete(heard);
          return Promise.resolve();
        },
      };
    },
    notify(channel, payload) {
      waiting.add(JSON.stringify([channel, payload]));
      sending ??= send().finally(() => (sending = null));
    },
    async close() {
      closed = true;
      await sending;
      await client?.end().catch(() => undefined);
    },
  };
}
