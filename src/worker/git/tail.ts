import type { Readable } from "node:stream";

/**
 * Reads a stream to its end and returns the last part, since an agent's program may write without end.
 * @param limit in characters
 */
export async function tailOf(stream: Readable, limit = 20_000): Promise<string> {
  let tail = "";
  for await (const chunk of stream.setEncoding("utf8")) tail = `${tail}${String(chunk)}`.slice(-limit);
  return tail;
}
