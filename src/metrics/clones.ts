import { Counter, type Registry } from "prom-client";

const ways = ["overlay", "copy", "checkout"] as const;
/** How a clone got its files (docs/operating.md). */
export type CloneWay = (typeof ways)[number];

/** Metrics of the clones that a worker makes. */
export interface CloneMetrics {
  cloneMade(way: CloneWay): void;
}

/** Registers the metrics of clones. */
export function createCloneMetrics(registry: Registry): CloneMetrics {
  const made = new Counter({
    name: "offstage_clones_total",
    help: "Clones that this worker made for sessions and setups, by how they got their files",
    labelNames: ["way"],
    registers: [registry],
  });
  // Without an initial 0, `increase` in Prometheus would miss a series' first event.
  for (const way of ways) made.inc({ way }, 0);
  return { cloneMade: (way) => made.inc({ way }) };
}
