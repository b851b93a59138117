import { stat } from "node:fs/promises";
import { ObjectStoreError } from "../../domain/errors/errors.ts";
import type { CheckpointOutcome } from "../../metrics/checkpoints.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { LeaseLostError } from "../../store/queue/lease.ts";
import { TooLargeError } from "../sandboxed/byte-limit.ts";

/**
 * Takes a checkpoint and records its duration and outcome in the metrics.
 * @param signal the one that bounds the checkpoint
 * @param before what was stored last: if `take` returns the same object, nothing had changed
 * @throws what `take` throws
 */
export async function measured<T>(
  metrics: Pick<Metrics, "checkpointEnded">,
  signal: AbortSignal,
  before: T,
  take: () => Promise<T>,
): Promise<T> {
  const startedAt = performance.now();
  const ended = (outcome: CheckpointOutcome): void =>
    metrics.checkpointEnded(outcome, (performance.now() - startedAt) / 1_000);
  try {
    const after = await take();
    ended(after === before ? "unchanged" : "taken");
    return after;
  } catch (error) {
    ended(outcomeOf(signal, error));
    throw error;
  }
}

function outcomeOf(signal: AbortSignal, error: unknown): CheckpointOutcome {
  if (error instanceof TooLargeError) return "tooLarge";
  if (error instanceof LeaseLostError) return "stopped";
  if (!signal.aborted || error instanceof ObjectStoreError) return "failed";
  return (signal.reason as Error).name === "TimeoutError" ? "timedOut" : "stopped";
}

/** Total size of files, in bytes. */
export async function totalSize(files: Iterable<string>): Promise<number> {
  const sizes = await Promise.all([...files].map(async (file) => (await stat(file)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * Counts in the metrics that a checkpoint of another worker was not restored.
 * @param how the outcome if the attempt was not stopped meanwhile
 */
export function countUnrestored(
  metrics: Pick<Metrics, "checkpointRestored">,
  signal: AbortSignal,
  error: unknown,
  how: "failed" | "unusable",
): void {
  const isOver = signal.aborted || error instanceof LeaseLostError;
  metrics.checkpointRestored(isOver ? "stopped" : how);
}
