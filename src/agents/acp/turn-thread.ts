import { lowerPriority } from "../../programs/priority.ts";

/**
 * Entry point of a turn's thread. On Linux a priority applies to one thread: the server's event loop has priority even
 * while this thread loads.
 */
if (process.platform === "linux") lowerPriority(0);
await import("./turn-program.ts");
