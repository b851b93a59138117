/**
 * How long a test waits for what must come, in milliseconds. It is no expectation of how fast that is: only what hangs takes
 * longer, on a machine however slow.
 */
export const hangTimeoutMs = 180_000;
