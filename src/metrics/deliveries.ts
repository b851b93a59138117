import { Counter, Histogram, type Registry } from "prom-client";

const attemptOutcomes = ["delivered", "refused", "unanswered"] as const;
/** How an attempt to tell a webhook ended; `refused`: by an answer that is none of 2xx; `unanswered`: nothing came. */
export type AttemptOutcome = (typeof attemptOutcomes)[number];

/** What a worker's relay tells of the outbox. */
export interface DeliveryMetrics {
  /** @param seconds from the first byte sent to the answer, or to giving up on one */
  deliveryAttempted(outcome: AttemptOutcome, seconds: number): void;
  /** So many deliveries were given up. */
  deliveriesDied(count: number): void;
}

/** Up to the relay's limit for an attempt. */
const attemptSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];

export function createDeliveryMetrics(registry: Registry): DeliveryMetrics {
  const registers = [registry];
  const attempts = new Histogram({
    name: "offstage_delivery_attempt_duration_seconds",
    help: "Time of this worker's attempts to tell a webhook, by outcome",
    labelNames: ["outcome"],
    buckets: attemptSeconds,
    registers,
  });
  const dead = new Counter({
    name: "offstage_deliveries_dead_total",
    help: "Deliveries that this worker gave up: after the last attempt, or because the address is gone",
    registers,
  });
  // A series that begins with its first event hides it from `increase`.
  for (const outcome of attemptOutcomes) attempts.zero({ outcome });
  return {
    deliveryAttempted: (outcome, seconds) => attempts.observe({ outcome }, seconds),
    deliveriesDied: (count) => dead.inc(count),
  };
}
