import { workerData } from "node:worker_threads";
import { phases, shared, timeSignal, usedCpu } from "./protocol.ts";

// This program runs in a thread next to the rendering one, and ends the process if a task has used up its processor
// time. It measures processor time and not wall-clock time, so that a small template does not fail on a busy machine.
// The rendering thread can't check this itself, because a regular expression or a sort does not return in between.

/** Milliseconds between two checks. */
const checkEveryMs = 5;

const state = new BigInt64Array(workerData as SharedArrayBuffer);
for (;;) {
  Atomics.wait(state, shared.phase, phases.idle);
  if (
    Atomics.load(state, shared.phase) === phases.rendering &&
    BigInt(usedCpu()) >= Atomics.load(state, shared.deadline)
  ) {
    // The thread that changes the phase first wins: an answer that is already being sent is not cut off.
    const before = Atomics.compareExchange(state, shared.phase, phases.rendering, phases.overdue);
    if (before === phases.rendering) process.kill(process.pid, timeSignal);
  }
  Atomics.wait(state, shared.phase, phases.rendering, checkEveryMs);
}
