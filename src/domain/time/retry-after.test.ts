import { expect, it } from "vitest";
import { boundedRetryAfterMs, retryAfterMs } from "./retry-after.ts";

const now = Date.parse("Sun, 22 Nov 2026 12:00:00 GMT");

it.each([
  ["120", 120_000],
  ["0", 0],
  ["1.5", 1_500],
  [" 3 ", 3_000],
  ["Sun, 22 Nov 2026 12:00:30 GMT", 30_000],
  ["Sunday, 22-Nov-26 12:00:30 GMT", 30_000],
  ["Sun, 22 Nov 2026 11:00:00 GMT", 0],
  ["soon", null],
  ["-5", null],
  ["", null],
  [undefined, null],
  [null, null],
])("Retry-After %j is %j ms", (value, ms) => {
  expect(retryAfterMs(value, now)).toBe(ms);
});

it.each([
  ["120", 120_000],
  ["86400", 3_600_000],
  ["Mon, 23 Nov 2026 12:00:00 GMT", 3_600_000],
  ["soon", null],
])("Retry-After %j is %j ms where an hour is the most", (value, ms) => {
  expect(boundedRetryAfterMs(value, now)).toBe(ms);
});
