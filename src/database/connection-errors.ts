import { OffstageError, UnavailableError } from "../domain/errors.ts";

/** Classes of SQLSTATE that tell of the connection or the server, and not of what was asked. */
const states = /^(?:08...|57P0[1-3]|53300)$/u;
/** The driver's own sentences, whole: what somebody else wrote may have such words in it. */
const sentences: ReadonlySet<string> = new Set([
  "Connection terminated",
  "Connection terminated unexpectedly",
  "Connection terminated due to connection timeout",
  "timeout exceeded when trying to connect",
  "Client has encountered a connection error and is not queryable",
  "Client was closed and is not queryable",
]);
const lost: ReadonlySet<string> = new Set(["ECONNRESET", "ETIMEDOUT"]);

/** SQLSTATEs of a user, password or database that the server refuses: nothing was asked of it yet. */
const refused: ReadonlySet<string> = new Set(["28000", "28P01", "3D000"]);

/** Why a database could not be opened, as its operator can mend it; an error of another kind as it is. */
export function openError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code = "" } = error as NodeJS.ErrnoException;
  if (!isConnectionError(error) && !refused.has(code)) return error;
  const said = error instanceof AggregateError ? (error.errors[0] as Error).message : error.message;
  return new UnavailableError(
    `the database can't be opened (${said}): check that it runs, and its address, user and password (DATABASE_URL)`,
    undefined,
    { cause: error },
  );
}

/** Whether an error only says that the database could not be reached just now: asked again later it may well answer. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof OffstageError) return false;
  // A name with several addresses, none of which answered.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isConnectionError);
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  if (states.test(code) || sentences.has(error.message)) return true;
  return (syscall === "connect" && code !== "") || (syscall === "read" && lost.has(code));
}
