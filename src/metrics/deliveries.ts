import { Counter, Histogram, type Registry } from "prom-client";

const deliveryOutcomes = ["delivered", "refused", "unanswered"] as const;
/**
 * How an attempt to send a webhook ended. `refused`: the answer's status was not 2xx; `unanswered`: there was no
 * answer.
 */
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/** Kinds of answers: what is written on a forge, and `service` for what Slack and Linear get. */
const answerKinds = ["comment", "reply", "resolution", "reaction", "status", "settings", "service"] as const;
const answerOutcomes = ["sent", "delayed", "refused", "dead"] as const;
/** How an attempt to send an answer ended. `delayed`: it will be tried again; `dead`: it was the last one. */
export type AnswerOutcome = (typeof answerOutcomes)[number];

/** Metrics of the webhook deliveries and the answers that a worker sends. */
export interface DeliveryMetrics {
  /** @param seconds the attempt's duration, with searches for an earlier one's result */
  answerAttempted(kind: (typeof answerKinds)[number], outcome: AnswerOutcome, seconds: number): void;
  /** @param seconds from the first byte sent to the answer or the timeout */
  deliveryAttempted(outcome: DeliveryOutcome, seconds: number): void;
  /** Counts deliveries that were given up. */
  deliveriesDied(count: number): void;
}

/** Up to the limit of one attempt. */
const attemptSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
const answerSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 75];

/** Registers the metrics of webhook deliveries and answers. */
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
  const answers = new Histogram({
    name: "offstage_answer_attempt_duration_seconds",
    help: "Duration of this worker's attempts to write on forges, in Slack and in Linear, by kind and outcome",
    labelNames: ["kind", "outcome"],
    buckets: answerSeconds,
    registers,
  });
  // Without an initial 0, `increase` in Prometheus would miss a series' first event.
  for (const outcome of deliveryOutcomes) attempts.zero({ outcome });
  for (const kind of answerKinds) for (const outcome of answerOutcomes) answers.zero({ kind, outcome });
  return {
    answerAttempted: (kind, outcome, seconds) => answers.observe({ kind, outcome }, seconds),
    deliveryAttempted: (outcome, seconds) => attempts.observe({ outcome }, seconds),
    deliveriesDied: (count) => dead.inc(count),
  };
}
