import { Counter, type Registry } from "prom-client";

const outcomes = ["warm", "none", "different", "notFirst", "failed", "off"] as const;
/**
 * How a session's harness was started. `warm`: it was ready, and took the turn; `none`: none was ready; `different`:
 * what the session starts can't be ready, such as with its own variables or secrets; `notFirst`: the session has
 * folders, a conversation or a gate already; `failed`: one was taken that had ended or did not answer, and another was
 * started; `off`: this worker keeps none.
 */
export type WarmStartOutcome = (typeof outcomes)[number];

/** The metric of warm sandboxes. */
export interface WarmStartMetrics {
  /** Called once for each attempt that starts a harness. */
  harnessStarted(outcome: WarmStartOutcome): void;
}

/** Registers the metric of warm sandboxes. */
export function createWarmStartMetrics(registry: Registry): WarmStartMetrics {
  const starts = new Counter({
    name: "offstage_warm_starts_total",
    help: "Harnesses that attempts at sessions started on this worker, by whether one was ready",
    labelNames: ["outcome"],
    registers: [registry],
  });
  // Without an initial 0, `increase` in Prometheus would miss a series' first event.
  for (const outcome of outcomes) starts.inc({ outcome }, 0);
  return { harnessStarted: (outcome) => starts.inc({ outcome }) };
}
