import { expect, it } from "vitest";
import { createTokenBucket } from "./token-bucket.ts";

it("a pace lets a burst through, then so many a second, and has a burst again after a pause", () => {
  let at = 0;
  const pace = createTokenBucket(3, 2, () => at);
  expect([pace.take(), pace.take(), pace.take()]).toEqual([0, 0, 0]);
  expect([pace.take(), pace.take()]).toEqual([500, 1_000]);
  at = 1_000;
  expect(pace.take()).toBe(500);
  at = 60_000;
  expect([pace.take(), pace.take(), pace.take(), pace.take()]).toEqual([0, 0, 0, 500]);
});
