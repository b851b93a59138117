import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { promisify } from "node:util";

/** Under root the agent runs as this uid and gid, which no account has: root inside would be root of the kernel. */
export const sandboxUid = 64_748;

/**
 * Makes a folder, and under root gives it with all that is in it to the sandbox's user. Only folders that no agent has touched
 * yet are given away: links in them are of our own making, and are not followed. The program does it in one go, where a call
 * for each of 80,000 files would take seconds.
 */
export async function giveToSandbox(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  if (process.getuid?.() !== 0) return;
  await promisify(execFile)("chown", ["-R", "-h", `${sandboxUid}:${sandboxUid}`, directory]);
}
