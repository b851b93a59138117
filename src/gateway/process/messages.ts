import type { ModelProviderId, ModelProviders } from "../../domain/agents/model.ts";
import type { EgressPolicy } from "../../domain/environments/egress.ts";
import type { Outbound } from "../../outbound/process-wide.ts";
import type { Prices } from "../costs/prices.ts";
import type { ModelUsage } from "../costs/usage.ts";
import type { RegistryRoute } from "../egress/registry-places.ts";
import type { RefusedConnection } from "../egress/egress.ts";
import type { Admission, ModelRequest } from "../models/admission.ts";
import type { ModelOutcome } from "../models/model-gateway.ts";
import type { ModelRefusal } from "../refusal.ts";
import type { ToolAnswer, ToolDescription } from "../tools.ts";
import type { ModelTraffic } from "../traffic.ts";

/** Configuration of a gateway's process. */
export interface GatewayTask {
  /** Folder of the gateway's socket. */
  readonly directory: string;
  readonly models: ModelProviders;
  readonly egress: EgressPolicy;
  /** Private registries, with their credentials. */
  readonly registries: readonly RegistryRoute[];
  /** Certificates that the sandbox trusts in addition to the usual ones, each as PEM. */
  readonly authorities: readonly string[];
  readonly permits: readonly string[];
  /** Tools of the service that the sandbox may call; none if omitted. */
  readonly tools?: readonly ToolDescription[];
  /** Sources of the metrics' model labels: the operator's own prices, and the models that the configuration names. */
  readonly labels: { readonly prices: Prices; readonly models: readonly string[] };
  /** File that records the models' traffic, and the secrets to mask in it; null: no recording. */
  readonly recording: { readonly file: string; readonly secrets: readonly string[] } | null;
}

/** A number of requests with the same labels. */
export interface RequestCount {
  readonly provider: ModelProviderId;
  /** The model's label in metrics. */
  readonly model: string;
  readonly outcome: ModelOutcome;
  readonly count: number;
}

/** A request that waits for its admission, without what can't be sent between processes. */
export type AdmissionRequest = Omit<ModelRequest, "signal">;

/** The answer to it. */
export type AdmissionAnswer = Pick<Admission, "outputLimit"> | ModelRefusal;

/** A message to the gateway's process. It answers calls by their number. */
export type ToGateway =
  | { readonly kind: "open"; readonly task: GatewayTask; readonly outbound: Outbound; readonly isWarm: boolean }
  /** To a gateway that was opened warm: the session that it serves from now on. Answered by `adopted`. */
  | { readonly kind: "adopt"; readonly task: GatewayTask }
  | { readonly kind: "admitted"; readonly call: number; readonly answer: AdmissionAnswer }
  | { readonly kind: "traffic"; readonly call: number }
  | { readonly kind: "toolAnswered"; readonly call: number; readonly answer: ToolAnswer }
  | { readonly kind: "close" };

/** A message from the gateway's process. */
export type FromGateway =
  | {
      readonly kind: "opened";
      readonly socket: string;
      readonly token: string;
      readonly authoritiesFile: string | null;
    }
  | { readonly kind: "adopted" }
  /** The gateway could not be opened, for a reason that the operator can fix. */
  | { readonly kind: "unopened"; readonly message: string }
  | { readonly kind: "admit"; readonly call: number; readonly request: AdmissionRequest }
  | { readonly kind: "tool"; readonly call: number; readonly name: string; readonly input: unknown }
  /** The client no longer waits for the answer. */
  | { readonly kind: "hungUp"; readonly call: number }
  | { readonly kind: "settle"; readonly call: number; readonly usage: ModelUsage | null }
  | { readonly kind: "requests"; readonly counts: readonly RequestCount[] }
  | { readonly kind: "refused"; readonly refusal: RefusedConnection }
  | { readonly kind: "traffic"; readonly call: number; readonly traffic: TrafficAges }
  /** The socket is closed and the recording is written; models' answers may still be read. */
  | { readonly kind: "closed"; readonly problem: string | null };

/** `ModelTraffic` with ages instead of times: the clocks of two processes have different origins. */
export type TrafficAges = Omit<ModelTraffic, "lastActivity" | "lastAnswer"> & {
  /** Ms since the last activity; negative while the gateway waits to retry. */
  readonly sinceActivity: number;
  readonly sinceAnswer: number;
};

/** Converts this process's times to ages, to be sent. */
export function agesOf({ lastActivity, lastAnswer, ...counts }: ModelTraffic): TrafficAges {
  const now = performance.now();
  return { ...counts, sinceActivity: now - lastActivity, sinceAnswer: now - lastAnswer };
}

/** Converts received ages to this process's times. */
export function trafficOf({ sinceActivity, sinceAnswer, ...counts }: TrafficAges): ModelTraffic {
  const now = performance.now();
  return { ...counts, lastActivity: now - sinceActivity, lastAnswer: now - sinceAnswer };
}
