import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, it } from "vitest";
import { isBranchName } from "./git-ref.ts";

function gitTakes(name: string): boolean {
  try {
    execFileSync("git", ["check-ref-format", `refs/heads/${name}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const awkward = fc.string({
  unit: fc.constantFrom("a", "/", ".", "-", "@", "{", "~", "^", ":", "?", "*", "[", "\\", " ", "\u007f", "ü", "lock"),
  minLength: 1,
  maxLength: 8,
});

it("takes no branch name that git itself refuses", () => {
  fc.assert(
    fc.property(awkward.filter(isBranchName), (name) => {
      expect(gitTakes(name)).toBe(true);
    }),
    { numRuns: 100 },
  );
});

it("takes as many bytes as forges do, and no more", () => {
  expect(isBranchName("é".repeat(122))).toBe(true);
  expect(isBranchName("é".repeat(123))).toBe(false);
});

it("takes no half of a surrogate pair, which no file system keeps", () => {
  expect(isBranchName("a\ud800b")).toBe(false);
});

it.each(["main", "release/2.1", "offstage/fix-1", "größe", "a.b", "feature/@me"])("takes %s", (name) => {
  expect(isBranchName(name)).toBe(true);
  expect(gitTakes(name)).toBe(true);
});
