import { expect, it } from "vitest";
import { backoffMs, shortened } from "./backoff.ts";

const bounds = { fromMs: 1_000, toMs: 600_000 };
/** The longest pauses, as chance never makes them longer. */
const longest = (failures: number, backoff = bounds): number => backoffMs(failures, backoff, () => 0);
const shortest = (failures: number, backoff: Parameters<typeof backoffMs>[1] = bounds): number =>
  backoffMs(failures, backoff, () => 1);

it("doubles the longest pause with each failure, up to its bound, however many there were", () => {
  expect([1, 2, 3, 4].map((failures) => longest(failures))).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect([10, 11, 100, 10_000].map((failures) => longest(failures))).toEqual([512_000, 600_000, 600_000, 600_000]);
});

it("leaves the whole pause to chance, or the share of it that is asked for", () => {
  expect([shortest(1), shortest(4), shortest(100)]).toEqual([0, 0, 0]);
  expect([1, 4, 100].map((failures) => shortest(failures, { ...bounds, jitter: 0.5 }))).toEqual([500, 4_000, 300_000]);
  expect([1, 4].map((failures) => shortest(failures, { ...bounds, jitter: 0 }))).toEqual([1_000, 8_000]);
  expect(backoffMs(2, bounds, () => 0.25)).toBe(1_500);
});

it("spreads what failed together", () => {
  const pauses = Array.from({ length: 1_000 }, () => backoffMs(5, bounds));
  expect(new Set(pauses).size).toBeGreaterThan(900);
  expect(Math.min(...pauses)).toBeGreaterThan(0);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(16_000);
});

it("shortens a pause by no more than the share that is left to chance", () => {
  expect([0, 0.5, 1].map((chance) => shortened(1_000, 0.1, () => chance))).toEqual([1_000, 950, 900]);
});
