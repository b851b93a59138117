import type { Readable } from "node:stream";

/** The end of what is written, whatever its length: a program of an agent's may write without end. @param limit in characters */
export async function tailOf(stream: Readable, limit = 20_000): Promise<string> {
  let tail = "";
  for await (const chunk of stream.setEncoding("utf8")) tail = `${tail}${String(chunk)}`.slice(-limit);
  return tail;
}
