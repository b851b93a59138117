import { join } from "node:path";
import pg from "pg";
import type { Logger } from "../observability.ts";
import { createDatabaseSocket, isConnectionError, openError } from "./connection-errors.ts";
import { startEmbeddedServer } from "./embedded/embedded.ts";
import { keepAlive } from "./keep-alive.ts";
import { migrate } from "./migrate.ts";
import { createNotifications, type Notifications } from "./notifications.ts";
import { poolerError, requireOwnConnections } from "./pooler.ts";

/** Runs queries: the pool, or one connection inside a transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;

/** An open database, with the notifications between processes. */
export interface Database extends Pick<Notifications, "listen" | "notify" | "notifyAtOnce" | "isListening"> {
  readonly pool: pg.Pool;
  /** Commits if `work` resolves, rolls back if it rejects. */
  transaction<T>(work: (transaction: Queryable) => Promise<T>): Promise<T>;
  /** Closes the connections and stops the embedded server if this process started it. Can be called twice. */
  close(): Promise<void>;
}

/** Folder of the schema's migrations. */
export const migrationsDirectory = join(import.meta.dirname, "../store/migrations");
/** Folder of the SQL functions' current definitions. */
export const definitionsDirectory = join(import.meta.dirname, "../store/sql");
const poolSize = 20;
const idleLimitMs = 60_000;

/**
 * Opens PostgreSQL, the embedded one if `url` is null, and migrates its schema.
 * @param options.attach for a short command that shares the embedded server of a running process
 * @param options.onProcess called as soon as a process of the embedded database has started, and perhaps again for the next; at once if
 *   `url` is set
 * @param options.migrated false: leaves the schema as it is, to back it up or to restore into it
 * @throws ConflictError if another process uses the embedded database, or a newer Offstage has migrated the schema
 * @throws InvalidInputError if the embedded database's folder can't be used, or a pooler shares connections at `url`
 * @throws UnavailableError if the database at `url` can't be reached
 */
export async function openDatabase(options: {
  readonly url: string | null;
  readonly directory: string;
  readonly logger: Logger;
  readonly attach?: boolean;
  readonly onProcess?: () => void;
  readonly migrated?: boolean;
}): Promise<Database> {
  const { logger, directory, attach = false, onProcess = () => undefined } = options;
  if (options.url !== null) onProcess();
  const server = options.url === null ? await startEmbeddedServer({ directory, attach, onProcess, logger }) : null;
  const url = server?.url ?? options.url ?? "";
  // A process that freezes inside a transaction must not hold its locks for ever.
  const limits = { max: poolSize, idle_in_transaction_session_timeout: idleLimitMs };
  const pool = new pg.Pool({ connectionString: url, ...limits, ...keepAlive, stream: createDatabaseSocket });
  // The pool replaces an idle connection that breaks. Without a listener the error would end the process.
  pool.on("error", (error) => logger.warn({ err: error }, "an idle database connection failed"));
  // The same for a connection that breaks between two statements of a transaction; the next statement fails then.
  pool.on("connect", (client) => client.on("error", () => undefined));
  const notifications = createNotifications(pool, url, logger);
  let closed: Promise<void> | null = null;
  async function close(): Promise<void> {
    await notifications.close();
    await pool.end();
    await server?.stop();
  }
  try {
    if (options.url !== null) await requireOwnConnections(pool);
    if (options.migrated !== false) await migrate(pool, migrationsDirectory, definitionsDirectory);
  } catch (error) {
    await close();
    throw options.url === null ? error : openError(poolerError(error));
  }
  return {
    pool,
    transaction: (work) => transaction(pool, work),
    listen: notifications.listen,
    notify: notifications.notify,
    notifyAtOnce: notifications.notifyAtOnce,
    isListening: notifications.isListening,
    close: () => (closed ??= close()),
  };
}

/**
 * Whether a write failed because the server had just closed the connection. A read would fail with the driver's own
 * message. Only used here: elsewhere EPIPE may come from another program's pipe.
 */
function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === "EPIPE";
}

async function transaction<T>(pool: pg.Pool, work: (transaction: Queryable) => Promise<T>): Promise<T> {
  try {
    return await inTransaction(await pool.connect(), work);
  } catch (error) {
    throw isBrokenPipe(error) ? new Error("Connection terminated unexpectedly", { cause: error }) : error;
  }
}

async function inTransaction<T>(client: pg.PoolClient, work: (transaction: Queryable) => Promise<T>): Promise<T> {
  let broken: Error | undefined;
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch((rollbackError: Error) => (broken = rollbackError));
    // A server that takes reads alone is another one than before: the next connection may lead to the right one.
    if (isConnectionError(error)) broken ??= error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}
