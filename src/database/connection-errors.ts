import { Socket } from "node:net";
import { OffstageError, UnavailableError } from "../domain/errors/errors.ts";

/**
 * SQLSTATE codes that report a problem of the connection or the server, not of the query
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html): among them that its disk or memory is used up, and that it takes
 * reads alone, as one that was the first until a failover.
 */
const states = /^(?:08...|57P0[1-3]|53[123]00|25006)$/u;
/** Messages of the driver. They are compared as a whole, because other messages may contain the same words. */
const sentences: ReadonlySet<string> = new Set([
  "Connection terminated",
  "Connection terminated unexpectedly",
  "Connection terminated due to connection timeout",
  "timeout exceeded when trying to connect",
  "Client has encountered a connection error and is not queryable",
  "Client was closed and is not queryable",
]);
const lost: ReadonlySet<string> = new Set(["ECONNRESET", "ETIMEDOUT"]);

/** SQLSTATE codes for a user, password or database that the server rejects, before any query. */
const refused: ReadonlySet<string> = new Set(["28000", "28P01", "3D000"]);

/**
 * Converts an error of opening a database to one that tells the operator how to fix it; returns other errors
 * unchanged.
 */
export function openError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code = "" } = error as NodeJS.ErrnoException;
  if (!isConnectionError(error) && !refused.has(code)) return error;
  const reason = error instanceof AggregateError ? (error.errors[0] as Error).message : error.message;
  return new UnavailableError(
    `the database can't be opened (${reason}): check that it runs, and its address, user and password (DATABASE_URL)`,
    undefined,
    { cause: error },
  );
}

/**
 * Whether PostgreSQL rolled a statement or transaction back only because of concurrent ones: a deadlock, or a conflict
 * of serializable ones. A repetition may succeed.
 */
export function isConflictOfTransactions(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return code === "40P01" || code === "40001";
}

/** Marks an error of a database's socket: by its code and message alone it might be of any pipe. */
const ofSocket = Symbol("of a connection to the database");

/** A socket for a connection to the database, whose errors `isConnectionError` knows, such as EPIPE in the middle of a query. */
export function createDatabaseSocket(): Socket {
  const socket = new Socket();
  return socket.on("error", (error) => Object.assign(error, { [ofSocket]: true }));
}

/**
 * Whether an error only says that the database could not be reached, or can't take requests now: a later attempt may
 * succeed.
 */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof OffstageError) return false;
  // No address of a host name answered.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isConnectionError);
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  if (ofSocket in error || states.test(code) || sentences.has(error.message)) return true;
  return (syscall === "connect" && code !== "") || (syscall === "read" && lost.has(code));
}
