import { useCompileCache } from "./programs/compile-cache.ts";

// Before anything else is loaded, since only what comes after it is cached.
useCompileCache();
await import("./command-line.ts");
