import type { StepName } from "../../domain/sessions/step.ts";
import type { StepOutcome } from "../../metrics/metrics.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";
import { isFailure } from "./end.ts";
import { failureOf } from "./failure.ts";

/** Runs a named step of an attempt. */
export type RunStep = <T>(name: StepName, work: () => Promise<T>) => Promise<T>;

/**
 * Makes what runs an attempt's steps by name: it emits their start and their end, with the failure if there is one, and measures
 * their duration. No step starts or completes when the attempt is to end.
 * @param current the attempt as it is by now: a step that opens its secrets is masked with them if it fails
 */
export function namedSteps(
  current: () => Attempt,
  services: Pick<AttemptServices, "metrics" | "traces" | "diskIsFull" | "ownDiskIsFull">,
): RunStep {
  const { session, signal } = current();
  const emit: Attempt["emit"] = (event) => current().emit(event);

  async function run<T>(name: StepName, work: () => Promise<T>): Promise<T> {
    await emit({ type: "step.started", data: { step: name, attempt: session.attempt } });
    const startedAt = performance.now();
    const durationMs = () => Math.round(performance.now() - startedAt);
    let outcome: StepOutcome = "stopped";
    try {
      const result = await work();
      signal.throwIfAborted();
      await emit({ type: "step.completed", data: { step: name, durationMs: durationMs() } });
      outcome = "completed";
      return result;
    } catch (error) {
      if (isFailure(error, signal)) {
        outcome = "failed";
        const failure = await failureOf(error, current(), services);
        await emit({ type: "step.failed", data: { step: name, durationMs: durationMs(), failure } });
      }
      throw error;
    } finally {
      services.metrics.stepEnded(name, outcome, (performance.now() - startedAt) / 1_000);
    }
  }

  return async (name, work) => {
    signal.throwIfAborted();
    return services.traces.span(`step.${name}`, {}, () => run(name, work));
  };
}
