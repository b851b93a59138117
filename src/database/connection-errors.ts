/** Classes of SQLSTATE that tell of the connection or the server, and not of what was asked. */
const states = /^(?:08...|57P0[1-3]|53300)$/u;
const words =
  /connection terminated|connection timeout|client has encountered a connection error|client was closed|server closed the connection/iu;

/** Whether an error only says that the database could not be reached just now: asked again later it may well answer. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  return states.test(code) || words.test(error.message) || (syscall === "connect" && code !== "");
}
