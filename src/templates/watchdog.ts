import { workerData } from "node:worker_threads";
import { phases, shared, timeSignal, usedCpu } from "./protocol.ts";

/**
 * A thread beside the one that renders: ends the process when a task used up its processor time. It counts processor time
 * instead of looking at a clock, so on a busy machine a small template is not taken for a large one. The rendering thread can't do this
 * itself: a regular expression or a sort never comes back to look.
 */
const lookEveryMs = 5;

const state = new BigInt64Array(workerData as SharedArrayBuffer);
for (;;) {
  Atomics.wait(state, shared.phase, phases.idle);
  if (
    Atomics.load(state, shared.phase) === phases.rendering &&
    BigInt(usedCpu()) >= Atomics.load(state, shared.deadline)
  ) {
    // Whoever changes the phase first decides: an answer that is already on its way is not cut off.
    const before = Atomics.compareExchange(state, shared.phase, phases.rendering, phases.overdue);
    if (before === phases.rendering) process.kill(process.pid, timeSignal);
  }
  Atomics.wait(state, shared.phase, phases.rendering, lookEveryMs);
}
