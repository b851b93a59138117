import { readFile } from "node:fs/promises";

/**
 * When this machine was started, as an id that no other start has; empty if that is not known. What was written and not synced is
 * whole for as long as it is the same, whatever processes were killed.
 */
export async function bootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "")).trim();
}
