import { Counter, Histogram, type Registry } from "prom-client";

const checkpointOutcomes = ["taken", "unchanged", "tooLarge", "timedOut", "failed", "stopped"] as const;
/**
 * How taking a checkpoint ended. `unchanged`: everything was stored before; `stopped`: by a cancellation, a budget, a
 * lost lease or a worker's shutdown.
 */
export type CheckpointOutcome = (typeof checkpointOutcomes)[number];

const restoreOutcomes = ["restored", "withoutMemory", "unusable", "failed", "stopped"] as const;
/**
 * How restoring another worker's checkpoint ended. `withoutMemory`: files are restored, and the agent gets the
 * earlier messages as text; `unusable`: the turn starts again; `failed`: for a temporary reason, so that the next
 * attempt tries again.
 */
export type RestoreOutcome = (typeof restoreOutcomes)[number];

/** Metrics of the checkpoints that a worker takes and restores. */
export interface CheckpointMetrics {
  /** @param seconds from its start to its end */
  checkpointEnded(outcome: CheckpointOutcome, seconds: number): void;
  /** @param bytes that were newly stored for it */
  checkpointStored(bytes: number): void;
  checkpointRestored(outcome: RestoreOutcome): void;
}

/** Up to the limit of one checkpoint; the last one of an attempt may take longer. */
const checkpointSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];
const checkpointBytes = [1_024, 16_384, 131_072, 1_048_576, 8_388_608, 67_108_864, 268_435_456, 1_073_741_824];

/** Registers the metrics of checkpoints. */
export function createCheckpointMetrics(registry: Registry): CheckpointMetrics {
  const registers = [registry];
  const ended = new Histogram({
    name: "offstage_checkpoint_duration_seconds",
    help: "Time to take a checkpoint of a session's work on this worker, by outcome",
    labelNames: ["outcome"],
    buckets: checkpointSeconds,
    registers,
  });
  const stored = new Histogram({
    name: "offstage_checkpoint_stored_bytes",
    help: "Bytes that a checkpoint added to the database",
    buckets: checkpointBytes,
    registers,
  });
  const restored = new Counter({
    name: "offstage_checkpoint_restores_total",
    help: "Restores of another worker's checkpoint on this worker, by outcome",
    labelNames: ["outcome"],
    registers,
  });
  // Without an initial 0, `increase` in Prometheus would miss a series' first event.
  for (const outcome of checkpointOutcomes) ended.zero({ outcome });
  for (const outcome of restoreOutcomes) restored.inc({ outcome }, 0);
  return {
    checkpointEnded: (outcome, seconds) => ended.observe({ outcome }, seconds),
    checkpointStored: (bytes) => stored.observe(bytes),
    checkpointRestored: (outcome) => restored.inc({ outcome }),
  };
}
