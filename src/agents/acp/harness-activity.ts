import { StringDecoder } from "node:string_decoder";
import type { TurnState } from "./turn-messages.ts";

/** Characters of a harness's log that are kept and searched. */
const keptLength = 20_000;
const tailLength = 1_000;

/** See `createHarnessActivity`. */
export type HarnessActivity = ReturnType<typeof createHarnessActivity>;

/** Records a harness's signs of life, as counted by the turn's thread, and its log. */
export function createHarnessActivity() {
  const decoder = new StringDecoder("utf8");
  let log = "";
  let modelError: string | null = null;
  let lastSign = performance.now();
  let last: TurnState = { signs: 0, started: false, toolRuns: false };
  return {
    /** The turn begins now: the time before was not its own. */
    begin: () => void (lastSign = performance.now()),
    update(state: TurnState): void {
      if (state.signs !== last.signs) {
        lastSign = performance.now();
        modelError = null;
      }
      last = state;
    },
    /** Takes a chunk of the harness's stderr, of limited size. */
    takeErrors(chunk: Buffer): void {
      const text = decoder.write(chunk).slice(-keptLength);
      log = `${log}${text}`.slice(-keptLength);
      modelError = modelErrorIn(text) ?? modelError;
    },
    /** Time of the last sign of life. */
    lastSign: () => lastSign,
    started: () => last.started,
    toolRuns: () => last.toolRuns,
    /** The end of the harness's stderr. */
    lastErrors: () => log.trim().slice(-tailLength),
    /** The last error of the model in the harness's log, if any since the last text or tool. */
    modelError: () => modelError,
  };
}

/** Finds a model server's error in the log: the protocol can't report it. */
function modelErrorIn(chunk: string): string | null {
  const line = chunk
    .split("\n")
    .findLast((part) => /\b(?:AI_APICallError|APIError|API Error|status(?:Code)?["=: ]+[45]\d\d)\b/u.test(part));
  if (line === undefined) return null;
  const message = /"message":"((?:[^"\\]|\\.)*)"/u.exec(line)?.[1] ?? /AI_APICallError: (.*)$/u.exec(line)?.[1];
  return (message ?? line).slice(0, 500);
}
