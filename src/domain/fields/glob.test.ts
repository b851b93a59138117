import fc from "fast-check";
import { expect, test } from "vitest";
import { matchesGlob } from "./glob.ts";

/** The pattern as a regular expression: correct, but slow for some. */
function fitsExpression(pattern: string, text: string): boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/gu, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "su").test(text);
}

test("a pattern fits what the same regular expression fits", () => {
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", ".", "*"), maxLength: 8 });
  const text = fc.string({ unit: fc.constantFrom("a", "b", ".", "\n", "💥"), maxLength: 12 });
  let fitting = 0;
  fc.assert(
    fc.property(pattern, text, (wanted, given) => {
      const fits = matchesGlob(wanted, given);
      if (fits) fitting += 1;
      expect(fits).toBe(fitsExpression(wanted, given));
    }),
    { numRuns: 5_000 },
  );
  expect(fitting).toBeGreaterThan(50);
});

test("what stands before and after the asterisk does not overlap", () => {
  expect(matchesGlob("ab*ba", "aba")).toBe(false);
  expect(matchesGlob("ab*ba", "abba")).toBe(true);
});

test.each([
  ["debian", "debian:12", false],
  ["", "", true],
  ["*", "", true],
  ["ghcr.io/acme/*", "ghcr.io/acme/node:24", true],
  ["ghcr.io/acme/*", "ghcr.io/acme.evil/node", false],
  ["ghcr.io/acme/*", "evil.io/ghcr.io/acme/node", false],
  [".*", "anything", false],
])("%s and %s: %s", (pattern, text, fits) => {
  expect(matchesGlob(pattern, text)).toBe(fits);
});
