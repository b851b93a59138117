import { constants, getPriority, setPriority } from "node:os";

/**
 * Gives the server priority over a program of ours. To be called before the program loads, which costs more of the processor
 * than most of what it does.
 * @param pid of the program's process; on Linux 0 is the calling thread alone
 */
export function lowerPriority(pid: number): void {
  const behind = constants.priority.PRIORITY_BELOW_NORMAL;
  // From further behind, as by systemd's Nice=15, only root may bring it forward (setpriority(2)).
  if (getPriority(pid) < behind) setPriority(pid, behind);
}
