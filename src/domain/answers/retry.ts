import { backoffMs } from "../time/backoff.ts";

/** From some seconds to some hours, half of it left to chance: an answer is tried for most of a day. */
const retrying = { fromMs: 4_000, toMs: 4 * 60 * 60_000, jitter: 0.5 };
/** Attempts that are made of an answer. */
const mostAttempts = 18;
/** Attempts at a reaction: it acknowledges a comment, which is of no use an hour later. */
const mostReactions = 8;

/**
 * How long to wait before an answer's next attempt, in ms; null if the attempt was the last.
 * @param attempts attempts made, from 1
 * @param least the shortest wait: what the forge asked for, or what it takes until a comment that may be there is listed
 */
export function answerPauseMs(kind: string, attempts: number, least: number): number | null {
  if (attempts >= (kind === "reaction" ? mostReactions : mostAttempts)) return null;
  return Math.max(least, backoffMs(attempts, retrying));
}
