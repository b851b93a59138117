import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** Characters of an error's body that are read, to within a chunk. */
const errorLimit = 4_000;

/**
 * Reads an error's message while the answer passes.
 * @param done gets the message, or the body's beginning if it has none
 */
export function readError(answer: Readable, done: (text: string) => void): void {
  // A character may be cut by the border of two chunks.
  const decoder = new StringDecoder("utf8");
  let text = "";
  answer.on("data", (chunk: Buffer) => {
    if (text.length < errorLimit) text += decoder.write(chunk.subarray(0, errorLimit));
  });
  answer.once("end", () => done((/"message"\s*:\s*"((?:[^"\\]|\\.)*)"/u.exec(text)?.[1] ?? text).slice(0, 500)));
}

/** Sends an error in a shape that clients of every provider can read. */
export function answerRefusal(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = { type: "error", error: { type: "offstage_gateway", code: status, message: `Offstage: ${message}` } };
  // A request that is refused for its size is not read to its end.
  const headers = { "Content-Type": "application/json", ...(!response.req.complete && { Connection: "close" }) };
  response.writeHead(status, headers).end(JSON.stringify(body));
}
