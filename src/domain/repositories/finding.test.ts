import { expect, test } from "vitest";
import { matchesPath } from "./finding.ts";

test.each([
  ["a.txt", "a.txt", true],
  ["a.txt", "b/a.txt", false],
  ["*.txt", "a.txt", true],
  ["*.txt", "b/a.txt", false],
  ["**/*.txt", "a.txt", true],
  ["**/*.txt", "b/c/a.txt", true],
  ["test/**", "test/a/b", true],
  ["test/**", "tests/a", false],
  ["test/**/key", "test/key", true],
  ["test/**/key", "test/a/b/key", true],
  ["test/**/key", "test/monkey", false],
  ["a*b*c", "aXbYc", true],
  ["a*b*c", "aX/bYc", false],
  ["a.c", "abc", false],
  ["ä*", "äö", true],
])("the pattern %s on %s: %s", (pattern, path, matches) => {
  expect(matchesPath(pattern, path)).toBe(matches);
});

test("a pattern of many stars takes no longer than its length times the path's", () => {
  expect(matchesPath(`${"*a".repeat(150)}b`, "a".repeat(4_096))).toBe(false);
});
