/** Codes of Node and of undici, which is its `fetch`, if no connection was made. */
const withoutConnection: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Whether no connection could be made, so that the other side can't have got the request. @param error what `fetch` threw */
export function wasNeverSent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Object && "code" in cause && withoutConnection.has(cause.code);
}
