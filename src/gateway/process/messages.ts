import type { EgressPolicy } from "../../domain/egress.ts";
import type { ModelProviderId, ModelProviders } from "../../domain/model.ts";
import type { Prices } from "../costs/prices.ts";
import type { ModelUsage } from "../costs/usage.ts";
import type { Refusal } from "../egress/egress.ts";
import type { ModelRequest } from "../models/admission.ts";
import type { ModelOutcome } from "../models/model-gateway.ts";
import type { ModelRefusal } from "../refusal.ts";
import type { ModelTraffic } from "../traffic.ts";

/** What a gateway's process is started for. */
export interface GatewayTask {
  /** Where the gateway's socket lies. */
  readonly directory: string;
  readonly models: ModelProviders;
  readonly egress: EgressPolicy;
  readonly permits: readonly string[];
  /** By which metrics name models: the operator's own prices, and the models that the configuration names. */
  readonly labels: { readonly prices: Prices; readonly models: readonly string[] };
  /** Where its models' traffic is written, and what is masked in it; null: nowhere. */
  readonly recording: { readonly file: string; readonly secrets: readonly string[] } | null;
}

/** Requests of models that came out alike. */
export interface RequestCount {
  readonly provider: ModelProviderId;
  /** As metrics name it. */
  readonly model: string;
  readonly outcome: ModelOutcome;
  readonly count: number;
}

/** A request that waits for its admission, without what only one process can hold. */
export type AskedAdmission = Omit<ModelRequest, "signal">;

/** To the process. Calls are answered by their number. */
export type ToGateway =
  | { readonly kind: "open"; readonly task: GatewayTask }
  | { readonly kind: "admitted"; readonly call: number; readonly answer: { outputLimit: number | null } | ModelRefusal }
  | { readonly kind: "traffic"; readonly call: number }
  | { readonly kind: "close" };

/** From the process. */
export type FromGateway =
  /** It is loaded, and can be told what to open. */
  | { readonly kind: "loaded" }
  | { readonly kind: "opened"; readonly socket: string; readonly token: string }
  /** What a person who configures the server can mend. */
  | { readonly kind: "unopened"; readonly message: string }
  | { readonly kind: "admit"; readonly call: number; readonly request: AskedAdmission }
  /** Nobody waits for the answer any more. */
  | { readonly kind: "hungUp"; readonly call: number }
  | { readonly kind: "settle"; readonly call: number; readonly usage: ModelUsage | null }
  | { readonly kind: "requests"; readonly counts: readonly RequestCount[] }
  | { readonly kind: "refused"; readonly refusal: Refusal }
  | { readonly kind: "traffic"; readonly call: number; readonly traffic: TrafficAges }
  /** Its socket is gone and its recording is written; what models were asked is still heard. */
  | { readonly kind: "closed"; readonly problem: string | null };

/** `ModelTraffic` between processes, whose clocks begin at different times. */
export type TrafficAges = Omit<ModelTraffic, "lastActivity" | "lastAnswer"> & {
  /** Ms since then; less than 0 while it waits to try again. */
  readonly sinceActivity: number;
  readonly sinceAnswer: number;
};

export function agesOf({ lastActivity, lastAnswer, ...counts }: ModelTraffic): TrafficAges {
  const now = performance.now();
  return { ...counts, sinceActivity: now - lastActivity, sinceAnswer: now - lastAnswer };
}

export function trafficOf({ sinceActivity, sinceAnswer, ...counts }: TrafficAges): ModelTraffic {
  const now = performance.now();
  return { ...counts, lastActivity: now - sinceActivity, lastAnswer: now - sinceAnswer };
}
