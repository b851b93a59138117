import { letServerComeFirst } from "../../domain/priority.ts";

/**
 * Entry point of a turn's thread. On Linux a priority applies to one thread: the server's event loop has priority even
 * while this thread loads, which costs more than most of its work.
 */
if (process.platform === "linux") letServerComeFirst(0);
await import("./turn-program.ts");
