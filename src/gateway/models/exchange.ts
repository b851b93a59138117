import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { createUsageReader, type ReportedUsage } from "../costs/usage.ts";
import type { Recorder } from "./recording.ts";

const droppedOfAnswers = new Set(["connection", "keep-alive", "set-cookie", "transfer-encoding", "upgrade"]);
/** Maximum bytes of an answer; usual ones have some megabytes, without images and audio. */
const answerLimit = 64 * 1024 * 1024;

/** How an answer ended. */
export interface ForwardedAnswer {
  readonly usage: ReportedUsage | null;
  /** Whether it was received to its end. */
  readonly isWhole: boolean;
}

/**
 * Passes an answer on as it arrives, and reads its usage. If the client hangs up, the answer is still read until its
 * end or until the caller aborts, because the provider continues to bill it.
 * @param options.onEnd called once, before the last byte is passed on
 */
export function forwardAnswer(
  answer: IncomingMessage,
  response: ServerResponse,
  options: {
    readonly recording: ReturnType<Recorder["begin"]> | null;
    readonly onData: () => void;
    readonly onEnd: (passed: ForwardedAnswer) => void;
  },
): void {
  const { recording } = options;
  const reader = createUsageReader();
  let bytes = 0;
  let isOver = false;
  const end = (isWhole: boolean): void => {
    if (isOver) return;
    isOver = true;
    options.onEnd({ usage: reader.end(), isWhole });
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
