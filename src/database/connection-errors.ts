import { OffstageError } from "../domain/errors.ts";

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

/** Whether an error only says that the database could not be reached just now: asked again later it may well answer. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof OffstageError) return false;
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  if (states.test(code) || sentences.has(error.message)) return true;
  return (syscall === "connect" && code !== "") || (syscall === "read" && lost.has(code));
}
