import { constants, getPriority, setPriority } from "node:os";

/**
 * Lets the server come before one of its processes, or on Linux before the thread that calls this. Whoever comes behind already
 * stays there: nearer to the front, as to 10 from 15, is what the system lets nobody but root (setpriority(2)).
 * @param pid 0: who calls it
 */
export function letServerComeFirst(pid: number): void {
  const behind = constants.priority.PRIORITY_BELOW_NORMAL;
  if (getPriority(pid) < behind) setPriority(pid, behind);
}
