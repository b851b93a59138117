import fc from "fast-check";
import { expect, it } from "vitest";
import { matchesWildcard } from "./wildcard.ts";

it.each([
  ["debian", "debian", true],
  ["debian", "debian:12", false],
  ["", "", true],
  ["", "a", false],
  ["*", "", true],
  ["ghcr.io/acme/*", "ghcr.io/acme/node:24", true],
  ["ghcr.io/acme/*", "ghcr.io/acme.evil/node", false],
  ["ghcr.io/acme/*", "evil.io/ghcr.io/acme/node", false],
  ["*/node:*", "ghcr.io/acme/node:24", true],
  ["a*a", "a", false],
  ["a*b*b", "ab", false],
  [".*", "anything", false],
])("%s and %s: %s", (pattern, text, fits) => {
  expect(matchesWildcard(pattern, text)).toBe(fits);
});

it("says what a regular expression would", () => {
  const letters = (...more: string[]) => fc.string({ unit: fc.constantFrom("a", "b", ".", ...more), maxLength: 12 });
  fc.assert(
    fc.property(letters("*"), letters(), (pattern, text) => {
      const parts = pattern.split("*").map((part) => part.replaceAll(".", String.raw`\.`));
      expect(matchesWildcard(pattern, text)).toBe(new RegExp(`^${parts.join(".*")}$`, "su").test(text));
    }),
    { numRuns: 2_000 },
  );
});

it("does not try the same places again and again", () => {
  const startedAt = performance.now();
  expect(matchesWildcard("*a".repeat(50_000) + "b", "a".repeat(100_000))).toBe(false);
  expect(matchesWildcard("*a*a*a*a*a*a*b*", "a".repeat(100_000))).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
