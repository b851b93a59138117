import type { SandboxedProcess } from "../../../sandboxes/sandbox.ts";
import type { Attempt } from "../../attempt/attempt.ts";

/** Time between the first samples, in ms. */
const firstEveryMs = 10_000;
/** After so many samples the time between them doubles: a long turn has not many more than a short one. */
const samplesBeforeSlower = 60;

/**
 * Samples the usage of the agent's sandbox for the session, while it runs. A sample that can't be stored is dropped:
 * other code notices what ends the attempt.
 * @param memoryLimitBytes null: there is no limit
 */
export function sampleUsage(
  child: Pick<SandboxedProcess, "usage"> & { readonly exited: Promise<unknown> },
  { emit, logger }: Pick<Attempt, "emit" | "logger">,
  memoryLimitBytes: number | null,
): void {
  // A harness that was started before its turn has used some already.
  let before = { at: performance.now(), cpuMs: child.usage()?.cpuMs ?? 0 };
  let samples = 0;
  let timer: NodeJS.Timeout | undefined;
  const sample = (): void => {
    const used = child.usage();
    const at = performance.now();
    if (used !== null) {
      const cores = Math.max(0, used.cpuMs - before.cpuMs) / (at - before.at);
      before = { at, cpuMs: used.cpuMs };
      const data = {
        memoryBytes: Math.round(used.memoryBytes),
        memoryLimitBytes,
        cores: Math.round(cores * 100) / 100,
      };
      emit({ type: "sandbox.usage", data }).catch((error: unknown) =>
        logger.debug({ err: error }, "a sample of a sandbox's use was not stored"),
      );
    }
    next();
  };
  const next = (): void => {
    const everyMs = firstEveryMs * 2 ** Math.floor(samples / samplesBeforeSlower);
    samples += 1;
    timer = setTimeout(sample, everyMs).unref();
  };
  next();
  void child.exited.then(() => clearTimeout(timer));
}
