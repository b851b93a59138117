import { constants, getPriority, setPriority } from "node:os";

/**
 * Entry point of a turn's thread. On Linux a priority applies to one thread: the server's event loop has priority even
 * while this thread loads, which costs more than most of its work.
 */
const behind = constants.priority.PRIORITY_BELOW_NORMAL;
// From further behind only root may bring it forward (setpriority(2)).
if (process.platform === "linux" && getPriority() < behind) setPriority(0, behind);
await import("./turn-program.ts");
