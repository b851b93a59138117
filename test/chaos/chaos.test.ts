import { expect, test } from "vitest";
import { runChaos } from "./run.ts";
import { createSchedule, type Mishap } from "./schedule.ts";

/** What `npm run chaos` does with hundreds of sessions, with a few: enough to see that every promise is looked at. */
test(
  "a fleet under fire keeps every session, and opens exactly one pull request for each",
  { timeout: 1_500_000 },
  async () => {
    const lines: string[] = [];
    const report = await runChaos({
      seed: 7,
      sessions: 18,
      apis: 2,
      workers: 3,
      mishaps: { before: 30, inLoop: 10 },
      limitMs: 1_200_000,
      tell: (line) => lines.push(line),
    });
    if (report.broken.length > 0)
      throw new Error(`${report.broken.join("\n")}\n\nWhat happened before:\n${lines.join("\n")}`);
    expect(Object.values(report.mishaps).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(3);
    // That the feedback loop was under fire, too: each of its events came six times, of which one counts, a turn lost its worker, and the
    // forge's answer to a comment was lost.
    expect(report.loop.events).toBe(9);
    expect(report.loop.duplicates).toBeGreaterThanOrEqual(5 * report.loop.events);
    expect(report.loop.killed).toBeGreaterThan(0);
    expect(report.loop.lostAnswers).toBeGreaterThan(0);
  },
);

test("the same seed makes the same things go wrong, and another seed others", () => {
  const first = (seed: number): Mishap[] => {
    const schedule = createSchedule(seed, { apis: 2, workers: 4 });
    return Array.from({ length: 200 }, () => schedule.next().value.mishap);
  };
  expect(first(1)).toEqual(first(1));
  expect(first(1)).not.toEqual(first(2));
  expect(new Set(first(1).map(({ kind }) => kind)).size).toBe(10);
});
