import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { createUsageReader, type ReportedUsage } from "../costs/usage.ts";
import { finalError, passingError } from "../traffic.ts";
import type { Recorder } from "./recording.ts";
import { reportedError, type ReportedError } from "./reported-error.ts";

const droppedOfAnswers = new Set(["connection", "keep-alive", "set-cookie", "transfer-encoding", "upgrade"]);
/** Maximum bytes of an answer; usual ones have some megabytes, without images and audio. */
const answerLimit = 64 * 1024 * 1024;

/** How an answer ended. */
export interface ForwardedAnswer {
  readonly usage: ReportedUsage | null;
  /** Why it was not received to its end; null if it was. */
  readonly broken: ReportedError | null;
}

const brokeOff: ReportedError = { message: "the model's answer broke off", outlook: passingError };
const tooLong: ReportedError = {
  message: `the model's answer has more than ${answerLimit / 1024 / 1024} MiB`,
  outlook: finalError,
};

/**
 * Passes an answer on as it arrives, and reads its usage. If the client hangs up, the answer is still read until its
 * end or until the caller aborts, because the provider continues to bill it.
 * @param options.onError called with an error that the answer reports although it began as a good one, before it is passed on
 * @param options.onEnd called once, before the last byte is passed on
 */
export function forwardAnswer(
  answer: IncomingMessage,
  response: ServerResponse,
  options: {
    readonly recording: ReturnType<Recorder["begin"]> | null;
    readonly onData: () => void;
    readonly onError: (error: ReportedError) => void;
    readonly onEnd: (passed: ForwardedAnswer) => void;
  },
): void {
  const { recording } = options;
  const reader = createUsageReader((found) => {
    const error = reportedError(found);
    if (error !== null) options.onError(error);
  });
  let bytes = 0;
  let isOver = false;
  const end = (broken: ReportedError | null): void => {
    if (isOver) return;
    isOver = true;
    options.onEnd({ usage: reader.end(), broken });
    if (broken === null) {
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
      return end(tooLong);
    }
    reader.read(chunk);
    recording?.chunk(chunk);
    if (!response.closed && !response.write(chunk)) answer.pause();
    return undefined;
  });
  answer.once("end", () => end(answer.complete ? null : brokeOff));
  answer.once("error", () => end(brokeOff));
  answer.once("close", () => end(brokeOff));
}

function answerHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !droppedOfAnswers.has(name)));
}
