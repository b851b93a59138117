import { spawnSync } from "node:child_process";

/** Whether a tool is on this machine; says so if it is not, and what of it is not tested then. */
export function isInstalled(tool: string, ...words: string[]): boolean {
  const has = spawnSync(tool, words, { timeout: 60_000 }).status === 0;
  if (!has) console.warn(`${tool} is not tested: it is not installed`);
  return has;
}
