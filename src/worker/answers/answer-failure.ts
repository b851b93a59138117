import { messageOf, SessionError } from "../../domain/errors/errors.ts";
import { settleMs } from "../../forges/feedback/feedback.ts";
import { ForgeUnavailable } from "../../forges/http/http.ts";
import { ReplyRefused, ReplyUnavailable } from "../../replies/reply.ts";
import { NowhereToAnswer } from "./write-answer.ts";

/** The meaning of an error for an answer. */
export interface AnswerFailure {
  /** A sentence for readers of the session's page. */
  readonly problem: string;
  /** Whether a later attempt may succeed. */
  readonly passes: boolean;
  /** The shortest wait before it, in ms. */
  readonly leastMs: number;
  /** For how long, in ms, the host asks to wait; null: it did not ask. */
  readonly restMs: number | null;
  /** Whether it is neither the forge's nor the service's: a fault of ours, for the log. */
  readonly isOurs: boolean;
}

const hour = 60 * 60_000;

/** Reads an error of `writeAnswer`. */
export function readAnswerFailure(error: unknown): AnswerFailure {
  const known = { problem: messageOf(error), passes: false, leastMs: 0, restMs: null, isOurs: false };
  if (error instanceof NowhereToAnswer || error instanceof ReplyRefused) return known;
  if (error instanceof ReplyUnavailable) return passing(known, error.isOpen, error.retryAfterMs);
  if (error instanceof SessionError) {
    const isOpen = error instanceof ForgeUnavailable && error.isOpen;
    return error.retryable ? passing(known, isOpen, error.retryAfterMs ?? null) : known;
  }
  // The attempt's own limit, or a fault of ours: it may have been written.
  const isTimeout = error instanceof Error && error.name === "TimeoutError";
  const problem = isTimeout ? "it took too long" : "it failed unexpectedly: the server's log says why";
  return { ...passing(known, true, null), problem, isOurs: !isTimeout };
}

/** @param isOpen whether it may have been written: the forge must list it before a worker searches for it */
function passing(known: AnswerFailure, isOpen: boolean, askedMs: number | null): AnswerFailure {
  const restMs = askedMs === null ? null : Math.min(askedMs, hour);
  return { ...known, passes: true, leastMs: Math.max(isOpen ? settleMs : 0, restMs ?? 0), restMs };
}
