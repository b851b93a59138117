import { describe, expect, test } from "vitest";
import type { Failure } from "../errors/errors.ts";
import { planRetry, type RetryRecord } from "./retry.ts";

const away: Failure = {
  code: "forge_unavailable",
  reason: "The forge is away.",
  retryable: true,
  passing: true,
  remedy: "Wait.",
};
const crash: Failure = { ...away, code: "agent_crashed", reason: "It crashed." };
const limits = { forMs: 24 * 3_600_000 };
/** The longest pauses. */
const noLuck = (): number => 0;

/** Fails at once again after each pause. @returns the pauses in ms */
function pauses(failure: Failure, most: number, retryAfterMs?: number): number[] {
  const delays: number[] = [];
  let now = 1_000_000;
  let record: RetryRecord | null = null;
  while (delays.length < most) {
    const planned = planRetry(failure, record, now, limits, retryAfterMs, noLuck);
    if (planned === null) break;
    delays.push(planned.delayMs);
    now += planned.delayMs;
    record = planned;
  }
  return delays;
}

describe("a passing failure", () => {
  test("is tried again after at most a second, then after pauses that double to ten minutes", () => {
    expect(pauses(away, 12)).toEqual(
      [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600].map((seconds) => seconds * 1_000),
    );
  });

  test("is tried again for a day, and no longer", () => {
    const all = pauses(away, 1_000);
    const sum = all.reduce((a, b) => a + b, 0);
    expect(sum).toBe(limits.forMs);
  });

  test("has full jitter: any part of the pause", () => {
    const planned = [0, 0.25, 0.999].map((chance) => planRetry(away, null, 0, limits, 0, () => chance)?.delayMs);
    expect(planned).toEqual([1_000, 750, expect.closeTo(1)]);
  });

  test("waits as long as the service asks, if that is longer", () => {
    expect(pauses(away, 3, 3_000)).toEqual([3_000, 3_000, 4_000]);
  });

  test("whose service asks for longer than the day that there is, is tried again once, when the day is over", () => {
    expect(pauses(away, 3, limits.forMs)).toEqual([limits.forMs]);
    expect(pauses(away, 3, 10 * limits.forMs)).toEqual([limits.forMs]);
    const first = planRetry(away, null, 0, limits, 3_600_000);
    expect(planRetry(away, first, 3_600_000, limits, limits.forMs)?.delayMs).toBe(limits.forMs - 3_600_000);
  });

  test("counts each reason by itself, and the time over all", () => {
    const first = planRetry(away, null, 5, limits, 0, noLuck);
    const second = planRetry(crash, first, 10, limits, 0, noLuck);
    const third = planRetry(away, second, 15, limits, 0, noLuck);
    expect([first?.attempt, second?.attempt, third?.attempt]).toEqual([1, 1, 2]);
    expect(third).toMatchObject({ code: "forge_unavailable", reason: away.reason, since: 5, delayMs: 2_000 });
  });
});

test("a harness that crashed or hung is resumed three times", () => {
  expect(pauses(crash, 10)).toHaveLength(3);
  expect(pauses({ ...crash, code: "agent_stalled" }, 10)).toHaveLength(3);
});

test("a setup that fails is run again three times, after longer pauses", () => {
  expect(pauses({ ...away, code: "setup_failed" }, 10)).toEqual([10_000, 20_000, 40_000]);
});

test("a session whose worker died is tried again at once three times, then after pauses, nine times in all", () => {
  const lost: Failure = { ...away, code: "worker_lost", reason: "Its worker died." };
  expect(pauses(lost, 100)).toEqual([0, 0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]);
});

test("a crash that alternates with another reason is resumed no more often", () => {
  let record: RetryRecord | null = null;
  for (const failure of [crash, away, crash, away, crash, away]) record = planRetry(failure, record, 0, limits);
  expect(planRetry(crash, record, 0, limits)).toBeNull();
  expect(planRetry(away, record, 0, limits)).not.toBeNull();
});

test("a failure that does not pass by itself is final, and so is each if nothing is to be tried again", () => {
  expect(planRetry({ ...away, passing: false }, null, 0, limits)).toBeNull();
  const { passing: _, ...unsaid } = away;
  expect(planRetry(unsaid, null, 0, limits)).toBeNull();
  expect(planRetry(away, null, 0, { forMs: 0 })).toBeNull();
});
