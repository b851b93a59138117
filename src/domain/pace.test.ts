import { expect, it } from "vitest";
import { createPace } from "./pace.ts";

it("a pace lets a burst through, then so many a second, and has a burst again after a pause", () => {
  let at = 0;
  const pace = createPace(3, 2, () => at);
  expect([pace.next(), pace.next(), pace.next()]).toEqual([0, 0, 0]);
  expect([pace.next(), pace.next()]).toEqual([500, 1_000]);
  at = 1_000;
  expect(pace.next()).toBe(500);
  at = 60_000;
  expect([pace.next(), pace.next(), pace.next(), pace.next()]).toEqual([0, 0, 0, 500]);
});
