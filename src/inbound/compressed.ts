/** The problem of an unreadable body if it was sent compressed, as the end of a sentence; null: it was not. */
export function compressedProblem({
  "content-encoding": encoding = "identity",
}: {
  readonly "content-encoding"?: string | undefined;
}): string | null {
  return encoding === "identity" ? null : `must not be compressed (Content-Encoding: ${encoding.slice(0, 50)})`;
}
