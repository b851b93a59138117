import { Counter, Histogram, type Registry } from "prom-client";

const checkpointOutcomes = ["taken", "unchanged", "tooLarge", "timedOut", "failed", "stopped"] as const;
/**
 * How a look at what is to be kept ended; `unchanged`: all of it was stored before; `stopped`: by a cancel, a budget, a lost
 * lease or a worker that shuts down.
 */
export type CheckpointOutcome = (typeof checkpointOutcomes)[number];

const restoreOutcomes = ["restored", "withoutMemory", "unusable", "failed", "stopped"] as const;
/**
 * How it ended to go on from another worker's checkpoint; `withoutMemory`: with its files, while the agent is told what was
 * said; `unusable`: the turn begins anew; `failed`: for a reason that may pass, so that the next run tries again.
 */
export type RestoreOutcome = (typeof restoreOutcomes)[number];

/** What a worker tells of the work that it keeps for others, and of that which it took over. */
export interface CheckpointMetrics {
  checkpointEnded(outcome: CheckpointOutcome, seconds: number): void;
  /** @param bytes that were stored for it, beside what was there */
  checkpointStored(bytes: number): void;
  checkpointRestored(outcome: RestoreOutcome): void;
}

/** Up to the limit for one, which the last of a run may exceed. */
const checkpointSeconds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];
const checkpointBytes = [1_024, 16_384, 131_072, 1_048_576, 8_388_608, 67_108_864, 268_435_456, 1_073_741_824];

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
    help: "What a checkpoint added to the database",
    buckets: checkpointBytes,
    registers,
  });
  const restored = new Counter({
    name: "offstage_checkpoint_restores_total",
    help: "Sessions that this worker was to go on with from another's checkpoint, by outcome",
    labelNames: ["outcome"],
    registers,
  });
  // A series that begins with its first event hides it from `increase`.
  for (const outcome of checkpointOutcomes) ended.zero({ outcome });
  for (const outcome of restoreOutcomes) restored.inc({ outcome }, 0);
  return {
    checkpointEnded: (outcome, seconds) => ended.observe({ outcome }, seconds),
    checkpointStored: (bytes) => stored.observe(bytes),
    checkpointRestored: (outcome) => restored.inc({ outcome }),
  };
}
