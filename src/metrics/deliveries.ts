import { Counter, Histogram, type Registry } from "prom-client";

const deliveryOutcomes = ["delivered", "refused", "unanswered"] as const;
/**
 * How an attempt to send a webhook ended. `refused`: the answer's status was not 2xx; `unanswered`: there was no
 * answer.
 */
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/** Metrics of the webhook deliveries that a worker sends. */
export interface DeliveryMetrics {
  /** @param seconds from the first byte sent to the answer or the timeout */
  deliveryAttempted(outcome: DeliveryOutcome, seconds: number): void;
  /** Counts deliveries that were given up. */
  deliveriesDied(count: number): void;
}

/** Up to the limit of one attempt. */
const attemptSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];

/** Registers the metrics of webhook deliveries. */
export function createDeliveryMetrics(registry: Registry): DeliveryMetrics {
  const registers = [registry];
  const attempts = new Histogram({
    name: "offstage_delivery_attempt_duration_seconds",
    help: "Duration of this worker's webhook delivery attempts, by outcome",
    labelNames: ["outcome"],
    buckets: attemptSeconds,
    registers,
  });
  const dead = new Counter({
    name: "offstage_deliveries_dead_total",
    help: "Deliveries that this worker gave up: after the last attempt, or because the receiver answered 410",
    registers,
  });
  // Without an initial 0, `increase` in Prometheus would miss a series' first event.
  for (const outcome of deliveryOutcomes) attempts.zero({ outcome });
  return {
    deliveryAttempted: (outcome, seconds) => attempts.observe({ outcome }, seconds),
    deliveriesDied: (count) => dead.inc(count),
  };
}
