import { writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/**
 * Loaded into the server that is measured: the most processor time that its event loop takes between two looks of a timer.
 * It is what the loop holds others up for, whatever else the machine does. SIGUSR2 writes it, in ms, and begins anew.
 */
const lookMs = 2;
const file = process.env["OFFSTAGE_BENCH_PROBE"];

if (isMainThread && file !== undefined) {
  let most = 0;
  let before = process.threadCpuUsage();
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    most = Math.max(most, (user + system) / 1_000);
  };
  setInterval(look, lookMs).unref();
  process.on("SIGUSR2", () => {
    look();
    writeFileSync(file, String(most));
    most = 0;
  });
}
