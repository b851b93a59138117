import { stat } from "node:fs/promises";
import { ObjectStoreError } from "../../domain/errors.ts";
import type { CheckpointOutcome } from "../../metrics/checkpoints.ts";
import { LeaseLostError } from "../../store/queue/lease.ts";
import type { Run } from "../attempt/run.ts";
import { TooLargeError } from "../sandboxed/at-most.ts";

/**
 * Takes a checkpoint and records its duration and outcome in the metrics.
 * @param before what was stored last: if `take` returns the same object, nothing had changed
 * @throws what `take` throws
 */
export async function measured<T>(run: Run, before: T, take: () => Promise<T>): Promise<T> {
  const { metrics } = run.dependencies;
  const startedAt = performance.now();
  const ended = (outcome: CheckpointOutcome): void =>
    metrics.checkpointEnded(outcome, (performance.now() - startedAt) / 1_000);
  try {
    const after = await take();
    ended(after === before ? "unchanged" : "taken");
    return after;
  } catch (error) {
    ended(outcomeOf(run, error));
    throw error;
  }
}

function outcomeOf(run: Run, error: unknown): CheckpointOutcome {
  if (error instanceof TooLargeError) return "tooLarge";
  if (error instanceof LeaseLostError) return "stopped";
  if (!run.signal.aborted || error instanceof ObjectStoreError) return "failed";
  return (run.signal.reason as Error).name === "TimeoutError" ? "timedOut" : "stopped";
}

/** Total size of files, in bytes. */
export async function sizeOf(files: Iterable<string>): Promise<number> {
  const sizes = await Promise.all([...files].map(async (file) => (await stat(file)).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * Counts in the metrics that a checkpoint of another worker was not restored.
 * @param how the outcome if the attempt was not stopped meanwhile
 */
export function countUnrestored(run: Run, error: unknown, how: "failed" | "unusable"): void {
  const isOver = run.signal.aborted || error instanceof LeaseLostError;
  run.dependencies.metrics.checkpointRestored(isOver ? "stopped" : how);
}
