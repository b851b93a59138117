import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { createUsageReader, type ToldUsage } from "../costs/usage.ts";
import type { Recorder } from "./recording.ts";

const droppedOfAnswers = new Set(["connection", "keep-alive", "set-cookie", "transfer-encoding", "upgrade"]);
/** An answer of a model is some megabytes at most; images and sound are in none. */
const answerLimit = 64 * 1024 * 1024;

/** How an answer ended. */
export interface Passed {
  readonly told: ToldUsage | null;
  /** It came to its end: it did not break off, and nobody stopped it. */
  readonly isWhole: boolean;
}

/**
 * Passes an answer on as it comes, and reads along what it tells of its usage. Whoever hangs up gets no more of it; it is read
 * to its end all the same, because its provider goes on to bill it, until the caller ends it.
 * @param options.onEnd called once, before the last byte is passed on
 */
export function passOn(
  answer: IncomingMessage,
  response: ServerResponse,
  options: {
    readonly recording: ReturnType<Recorder["begin"]> | null;
    readonly onData: () => void;
    readonly onEnd: (passed: Passed) => void;
  },
): void {
  const { recording } = options;
  const reader = createUsageReader();
  let bytes = 0;
  let isOver = false;
  const end = (isWhole: boolean): void => {
    if (isOver) return;
    isOver = true;
    options.onEnd({ told: reader.end(), isWhole });
    if (isWhole) {
      recording?.end();
      response.end();
    } else response.destroy();
  };
  response.writeHead(answer.statusCode ?? 502, answerHeaders(answer.headers));
  response.on("drain", () => answer.resume());
  response.once("close", () => answer.resume());
  answer.on("data", (chunk: Buffer) => {
    options.onData();
    bytes += chunk.length;
    if (bytes > answerLimit) {
      answer.destroy();
      return end(false);
    }
    reader.read(chunk);
    recording?.chunk(chunk);
    if (!response.closed && !response.write(chunk)) answer.pause();
    return undefined;
  });
  answer.once("end", () => end(answer.complete));
  answer.once("error", () => end(false));
  answer.once("close", () => end(false));
}

function answerHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !droppedOfAnswers.has(name)));
}
