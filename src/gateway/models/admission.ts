import type { ModelProviderId } from "../../domain/agents/model.ts";
import type { MostUsage } from "../costs/estimate.ts";
import type { ModelUsage } from "../costs/usage.ts";
import type { ModelRefusal } from "../refusal.ts";

/** A request that waits to be admitted. */
export interface ModelRequest {
  readonly provider: ModelProviderId;
  readonly model: string;
  /** Maximum that it can use; null if it costs nothing. */
  readonly most: MostUsage | null;
  /** Aborts when the client hangs up. */
  readonly signal: AbortSignal;
}

/** Permission to send a request. Its maximum cost is reserved until it is settled. */
export interface Admission {
  /** Maximum tokens of one answer that the budget covers; null: as many as were requested. */
  readonly outputLimit: number | null;
  /**
   * Must be called once, before the answer ends, so that the next request finds it billed.
   * @param usage what it used; null: the request was not sent, or costs nothing
   */
  settle(usage: ModelUsage | null): void;
}

/** Asked before each attempt at a request to a model. */
export type Admit = (request: ModelRequest) => Promise<Admission | ModelRefusal>;

/** Whether the request was refused. */
export function isRefusal(answer: object): answer is ModelRefusal {
  return "status" in answer;
}

/** Admits every request, without a budget. */
export const admitAll: Admit = () => Promise.resolve({ outputLimit: null, settle: () => undefined });
