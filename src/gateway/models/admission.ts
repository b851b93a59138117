import type { ModelProviderId } from "../../domain/model.ts";
import type { MostUsage } from "../costs/estimate.ts";
import type { ModelUsage } from "../costs/usage.ts";
import type { ModelRefusal } from "../refusal.ts";

/** A request that somebody wants to send. */
export interface ModelRequest {
  readonly provider: ModelProviderId;
  readonly model: string;
  /** What it can use at most; null if it costs nothing. */
  readonly most: MostUsage | null;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** A request that may be sent, with what it can cost held back until it is settled. */
export interface Admission {
  /** Tokens that one answer may have so that the budget covers it; null: as many as were asked for. */
  readonly outputLimit: number | null;
  /**
   * Called once, before the answer ends, so that the next request finds it counted.
   * @param usage what it used; null: nothing was asked, or it costs nothing
   */
  settle(usage: ModelUsage | null): void;
}

/** Asked before each attempt at a request of a model. */
export type Admit = (request: ModelRequest) => Promise<Admission | ModelRefusal>;

export function isRefusal(answer: Admission | ModelRefusal): answer is ModelRefusal {
  return "status" in answer;
}

/** For whoever counts nothing. */
export const admitAll: Admit = () => Promise.resolve({ outputLimit: null, settle: () => undefined });
