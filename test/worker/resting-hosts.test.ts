import { expect, test } from "vitest";
import { createRestingHosts } from "../../src/worker/conversations/ask-forge.ts";

test("a host that does not answer rests longer each time, up to half a minute, and from the beginning once it has answered", () => {
  let now = 0;
  const hosts = createRestingHosts(() => now);
  const failAndPass = (): number => {
    const restMs = hosts.failed("one");
    expect(hosts.leftMs("one")).toBe(restMs);
    now += restMs;
    expect(hosts.leftMs("one")).toBe(0);
    return restMs;
  };
  const restsMs = Array.from({ length: 8 }, failAndPass);
  for (const [times, restMs] of restsMs.entries()) {
    const longestMs = Math.min(30_000, 1_000 * 2 ** times);
    expect(restMs).toBeLessThanOrEqual(longestMs);
    expect(restMs).toBeGreaterThanOrEqual(longestMs * 0.8);
  }
  hosts.answered("one");
  expect(failAndPass()).toBeLessThanOrEqual(1_000);
  expect(hosts.leftMs("two")).toBe(0);
});

test("a host that names a time rests for that, an hour at most", () => {
  const hosts = createRestingHosts(() => 0);
  expect(hosts.failed("one", 90_000)).toBe(90_000);
  expect(hosts.failed("one", 86_400_000)).toBe(3_600_000);
});
