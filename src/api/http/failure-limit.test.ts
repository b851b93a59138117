import { expect, onTestFinished, test, vi } from "vitest";
import { TooManyRequestsError } from "../../domain/errors/errors.ts";
import { createFailureLimit } from "./failure-limit.ts";

test("so many failures a minute are let through, and after a minute again", () => {
  let now = 0;
  const limit = createFailureLimit(3, () => now);
  for (let count = 0; count < 3; count += 1) {
    limit.check("192.0.2.1");
    limit.fail("192.0.2.1");
    now += 10_000;
  }
  expect(() => limit.check("192.0.2.1")).toThrow(TooManyRequestsError);
  limit.check("192.0.2.2");
  now = 60_000;
  limit.check("192.0.2.1");
});

test.each([
  ["2001:db8::1", "2001:db8:0:0:ffff::2", true],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::", true],
  ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ["::1", "::2", true],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.2", false],
])("%s and %s count as one network: %s", (one, other, same) => {
  const limit = createFailureLimit(1, () => 0);
  limit.fail(one);
  let refused = false;
  try {
    limit.check(other);
  } catch {
    refused = true;
  }
  expect(refused).toBe(same);
});

test("failures are over after a minute, also if the machine's clock is put back", () => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const limit = createFailureLimit(1);
  limit.fail("192.0.2.1");
  expect(() => limit.check("192.0.2.1")).toThrow("try again in 60 s");
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(60_000);
  limit.check("192.0.2.1");
});
