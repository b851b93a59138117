import type { Failure, FailureCode } from "../errors/errors.ts";
import { backoffMs } from "../time/backoff.ts";

/** The record of attempts that failed for passing reasons since the agent's last finished turn. */
export interface RetryRecord {
  /** Of the last failure. */
  readonly code: FailureCode;
  readonly reason: string;
  /** How many attempts failed for the last reason, the last one among them. */
  readonly attempt: number;
  /**
   * The same of every reason: two that alternate do not restart the count each time. A worker that died and was not
   * dead after all counts for a part.
   */
  readonly counts: Readonly<Partial<Record<FailureCode, number>>>;
  /** Time of the first failure, in ms since 1970. */
  readonly since: number;
  /** When it was last found that its worker had died, in ms since 1970. */
  readonly lostAt?: number;
}

/** A retry: what is remembered, and after how many ms the session may be claimed again. */
export interface PlannedRetry extends RetryRecord {
  readonly delayMs: number;
}

/** Limits on retries. */
export interface RetryLimits {
  /** How long, in ms, a session is tried again after its first failure. 0: it is not. */
  readonly forMs: number;
}

/** Of a second at most after the first failure, then longer, with full jitter. */
const backoff = { fromMs: 1_000, toMs: 600_000 };

/** How often a failure is followed by a retry if that may be the session's own doing. */
interface OwnDoing {
  readonly retries: number;
  /** So many of them have no pause. */
  readonly atOnce: number;
  /** Longest first pause, in ms; a second if omitted. */
  readonly fromMs?: number;
}

/**
 * Failures that may be the session's own doing, such as a prompt that makes its harness use too much memory. Each
 * attempt costs money, so these are resumed a few times without progress between, and not for hours. A worker mostly
 * dies for other reasons, and its sessions should not wait; the longer the pauses, the fewer workers does a session
 * harm that kills each.
 */
const ownDoing: Readonly<Partial<Record<FailureCode, OwnDoing>>> = {
  agent_crashed: { retries: 3, atOnce: 0 },
  agent_stalled: { retries: 3, atOnce: 0 },
  // It costs no model's money, only time: a host of packages that is away gets some of that.
  setup_failed: { retries: 3, atOnce: 0, fromMs: 10_000 },
  resources_exhausted: { retries: 3, atOnce: 0 },
  internal: { retries: 3, atOnce: 0 },
  worker_lost: { retries: 9, atOnce: 3 },
};

/** Codes of failures that may be the session's own doing: they are counted only as long as it makes no progress. */
export const ownDoingCodes: readonly FailureCode[] = Object.keys(ownDoing) as FailureCode[];

/** The discount on the count of dead workers for a death that the session probably did not cause. */
export const unlikelyItsDoing = 0.75;

/**
 * The record of a session whose worker died, if other workers died without it since the last time: then workers die
 * whatever they work on, as they do when machines are replaced or a release is broken, and this death counts for a
 * quarter. Else ten deaths within a minute or two would fail each session of such a fleet.
 */
export function withSharedBlame(record: RetryRecord): RetryRecord {
  const counted = record.counts.worker_lost ?? 0;
  return { ...record, counts: { ...record.counts, worker_lost: Math.max(0, counted - unlikelyItsDoing) } };
}

/**
 * Plans the retry of a session whose attempt failed.
 * @param before what is remembered of earlier failures; null if there were none
 * @param now in ms since 1970, by the database's clock
 * @param retryAfterMs how long the service that failed asks to wait; if that is longer than the time that is left, the
 *   session is tried a last time when that is over
 * @param random from 0 inclusive to 1 exclusive
 * @returns null if the failure is final: it does not pass by itself, or has not passed in time
 */
export function planRetry(
  { code, reason, passing }: Failure,
  before: RetryRecord | null,
  now: number,
  { forMs }: RetryLimits,
  retryAfterMs = 0,
  random?: () => number,
): PlannedRetry | null {
  if (passing !== true) return null;
  const count = (before?.counts[code] ?? 0) + 1;
  const attempt = Math.ceil(count);
  const { retries = Infinity, atOnce = 0, fromMs = backoff.fromMs } = ownDoing[code] ?? {};
  if (count > retries) return null;
  const since = before?.since ?? now;
  const pauseMs = attempt <= atOnce ? 0 : backoffMs(attempt - atOnce, { ...backoff, fromMs }, random);
  const leftMs = since + forMs - now;
  if (leftMs <= 0) return null;
  const delayMs = Math.min(Math.max(pauseMs, retryAfterMs), leftMs);
  return { ...before, code, reason, attempt, counts: { ...before?.counts, [code]: count }, since, delayMs };
}
