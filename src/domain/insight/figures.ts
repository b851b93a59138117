import { quantileMs, type Histogram } from "./histogram.ts";
import type { Figures } from "./insight.ts";

/** The sums from which figures follow. */
export interface FigureSums extends Pick<
  Figures,
  | "sessions"
  | "completed"
  | "failed"
  | "cancelled"
  | "pullRequests"
  | "merged"
  | "closed"
  | "inputTokens"
  | "outputTokens"
  | "cacheReadTokens"
  | "cacheWriteTokens"
  | "reasoningTokens"
  | "costUsd"
> {
  readonly roundsInAll: number;
  readonly waits: Histogram;
  readonly openings: Histogram;
  readonly mergings: Histogram;
}

const none: Histogram = { buckets: [], counts: [] };

/** The sums of a period in which nothing was. */
export const noSums: FigureSums = {
  sessions: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  pullRequests: 0,
  merged: 0,
  closed: 0,
  roundsInAll: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  waits: none,
  openings: none,
  mergings: none,
};

const share = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

/** The figures that follow from sums. */
export function figuresOf({ roundsInAll, waits, openings, mergings, ...sums }: FigureSums): Figures {
  const { sessions, completed, failed, cancelled, pullRequests, merged, costUsd } = sums;
  return {
    ...sums,
    underWay: sessions - completed - failed - cancelled,
    shareMerged: share(merged, pullRequests),
    openingP50Ms: quantileMs(openings, 0.5),
    openingP90Ms: quantileMs(openings, 0.9),
    mergingP50Ms: quantileMs(mergings, 0.5),
    mergingP90Ms: quantileMs(mergings, 0.9),
    waitP50Ms: quantileMs(waits, 0.5),
    waitP90Ms: quantileMs(waits, 0.9),
    reviewRounds: share(roundsInAll, pullRequests),
    costPerMergedUsd: share(costUsd, merged),
  };
}
