import { StringDecoder } from "node:string_decoder";
import type { TurnState } from "./turn-messages.ts";

/** How much of a harness's log is looked at and kept, in characters. */
const keptLength = 20_000;
const tailLength = 1_000;

export type Life = ReturnType<typeof createLife>;

/** What shows that a harness is alive, or what ails it: its signs, as the turn's thread heard them, and its log. */
export function createLife() {
  const decoder = new StringDecoder("utf8");
  let said = "";
  let modelError: string | null = null;
  let lastSign = performance.now();
  let last: TurnState = { signs: 0, started: false, toolRuns: false };
  return {
    hear(state: TurnState): void {
      if (state.signs !== last.signs) {
        lastSign = performance.now();
        modelError = null;
      }
      last = state;
    },
    /** A piece of what the harness wrote to stderr, of a bounded size. */
    takeErrors(piece: Buffer): void {
      const text = decoder.write(piece).slice(-keptLength);
      said = `${said}${text}`.slice(-keptLength);
      modelError = modelErrorIn(text) ?? modelError;
    },
    /** When there was the last sign of life. */
    lastSign: () => lastSign,
    started: () => last.started,
    toolRuns: () => last.toolRuns,
    /** The end of what the harness wrote to stderr. */
    lastErrors: () => said.trim().slice(-tailLength),
    /** The last error of the model that the harness logged, if any since the last text or tool. */
    modelError: () => modelError,
  };
}

/** Harnesses log what the model's server answered; the protocol has no word for it. */
function modelErrorIn(chunk: string): string | null {
  const line = chunk
    .split("\n")
    .findLast((part) => /\b(?:AI_APICallError|APIError|API Error|status(?:Code)?["=: ]+[45]\d\d)\b/u.test(part));
  if (line === undefined) return null;
  const message = /"message":"((?:[^"\\]|\\.)*)"/u.exec(line)?.[1] ?? /AI_APICallError: (.*)$/u.exec(line)?.[1];
  return (message ?? line).slice(0, 500);
}
