import { constants, setPriority } from "node:os";

/**
 * Entry point of a turn's thread. On Linux a priority applies to one thread: the server's event loop has priority even
 * while this thread loads, which costs more than most of its work.
 */
if (process.platform === "linux") setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
await import("./turn-program.ts");
