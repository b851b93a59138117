/** What a process that a test starts has of this one's environment, and nothing else. */
export const testEnvironment = (): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  ...(process.env["NODE_COMPILE_CACHE"] && { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] }),
});
