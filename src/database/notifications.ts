import type { Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { backoffMs } from "../domain/time/backoff.ts";
import type { Logger } from "../observability.ts";
import { createDatabaseSocket } from "./connection-errors.ts";
import { keepAlive } from "./keep-alive.ts";

/** A listener that can be removed. */
export interface ListenerHandle {
  /** Removes the listener. */
  close(): Promise<void>;
}

/** Notifications between the processes that share a database. */
export interface Notifications {
  /**
   * Calls `listener` for each notification on a channel. After a lost connection every listener is called with "",
   * because notifications may have been missed: it must query the database itself.
   */
  listen(channel: string, listener: (payload: string) => void): Promise<ListenerHandle>;
  /**
   * Notifies every process; call it after the commit. Listeners of this process are called without the database.
   * Never throws: workers also poll slowly, which finds the work of a lost notification.
   */
  notify(channel: string, payload: string): void;
  /** As `notify`, and calls the listeners of this process before it returns, for what must not be done by what it knew before. */
  notifyAtOnce(channel: string, payload: string): void;
  /**
   * Whether notifications of other processes arrive; false until the first listener is connected, and while its
   * connection is lost.
   */
  isListening(): boolean;
  /** Sends the remaining notifications and closes the connection, even one that is being made. Can be called twice. */
  close(): Promise<void>;
}

/**
 * NOTIFY inside a transaction takes a lock that serializes all commits, so notifications are sent after the commit:
 * the first at once, those of the next milliseconds together.
 */
const batchMs = 5;
/** Pauses between attempts to connect: all nodes lose a database that restarts at the same moment. */
const reconnecting = { fromMs: 100, toMs: 5_000 };

/** Makes LISTEN and NOTIFY over one connection of the process. */
export function createNotifications(pool: pg.Pool, url: string, logger: Logger): Notifications {
  const listeners = new Map<string, Set<(payload: string) => void>>();
  const waiting = new Set<string>();
  let sending: Promise<void> | null = null;
  let client: pg.Client | null = null;
  let connecting: Promise<void> | null = null;
  /** That of the last connection that was begun. */
  let socket: Socket | null = null;
  const closing = new AbortController();

  async function connect(): Promise<void> {
    for (let attempt = 0; !closing.signal.aborted; attempt += 1) {
      const fresh = new pg.Client({
        connectionString: url,
        ...keepAlive,
        stream: () => (socket = createDatabaseSocket()),
      });
      // From the beginning: an error of a client without a listener ends the process. Not `once`: a connection that the
      // server closes emits two.
      fresh.on("error", (error) => lost(fresh, error));
      try {
        await fresh.connect();
        const { rows } = await fresh.query<{ own: number }>("select pg_backend_pid() as own");
        fresh.on("notification", ({ channel, payload, processId }) => {
          // Listeners were already called when this connection sent the notification.
          if (processId !== rows[0]?.own) dispatch(channel, payload ?? "");
        });
        fresh.once("end", () => lost(fresh, null));
        for (const channel of listeners.keys()) await fresh.query(`listen ${pg.escapeIdentifier(channel)}`);
        if (closing.signal.aborted) {
          await fresh.end();
          return;
        }
        // Not earlier: until here, only this loop handles a lost connection.
        client = fresh;
        if (attempt > 0) for (const all of listeners.values()) for (const listener of all) listener("");
        return;
      } catch (error) {
        await fresh.end().catch(() => undefined);
        if (closing.signal.aborted) return;
        logger.warn({ err: error }, "could not listen for notifications; will retry");
        const pauseMs = backoffMs(attempt + 1, reconnecting);
        await pause(pauseMs, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  }

  function lost(which: pg.Client, error: Error | null): void {
    if (client !== which || closing.signal.aborted) return;
    client = null;
    logger.warn({ err: error }, "lost the connection that listens for notifications; reconnecting");
    connecting = connect().then(() => {
      for (const all of listeners.values()) for (const listener of all) listener("");
    });
  }

  function dispatch(channel: string, payload: string): void {
    for (const listener of listeners.get(channel) ?? []) listener(payload);
  }

  async function send(): Promise<void> {
    // Wait for all notifications of the same turn of the event loop, to send them together.
    await Promise.resolve();
    while (waiting.size > 0) {
      const words = [...waiting].map((word) => JSON.parse(word) as [string, string]);
      waiting.clear();
      const through = client;
      // If nothing listens yet or the connection is lost, the pool is used, and listeners of this process get the
      // notification from the database.
      if (through !== null) for (const [channel, payload] of words) dispatch(channel, payload);
      // Let the listeners send their queries before the notification goes to other processes.
      await nextTurn();
      try {
        await (through ?? pool).query({
          name: "notify",
          text: "select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as word (channel, payload)",
          values: [words.map(([channel]) => channel), words.map(([, payload]) => payload)],
        });
      } catch (error) {
        if (!closing.signal.aborted) logger.warn({ err: error }, "could not send a notification; listeners will poll");
      }
      await pause(batchMs);
    }
  }

  function notify(channel: string, payload: string): void {
    waiting.add(JSON.stringify([channel, payload]));
    sending ??= send().finally(() => (sending = null));
  }

  return {
    notify,
    notifyAtOnce(channel, payload) {
      dispatch(channel, payload);
      notify(channel, payload);
    },
    async listen(channel, listener) {
      const all = listeners.get(channel) ?? new Set();
      listeners.set(channel, all.add(listener));
      if (client === null) await (connecting ??= connect());
      else if (all.size === 1) await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      return {
        close() {
          all.delete(listener);
          return Promise.resolve();
        },
      };
    },
    isListening: () => client !== null,
    async close() {
      closing.abort();
      // A server that does not answer would keep it waiting.
      if (client === null) socket?.destroy();
      await connecting;
      await sending;
      await client?.end().catch(() => undefined);
    },
  };
}
