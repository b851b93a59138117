import { constants, setPriority } from "node:os";

/**
 * Where the thread of a turn begins. On Linux a priority is the thread's own: the server's loop comes first, also while this
 * one loads, which takes longer than most of what it does.
 */
if (process.platform === "linux") setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
await import("./turn-program.ts");
