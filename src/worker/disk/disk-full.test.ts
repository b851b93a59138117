import { expect, test } from "vitest";
import { isDiskFull } from "./disk-full.ts";

test.each([
  "fatal: write error: No space left on device",
  "error: unable to write file one.txt: Disk quota exceeded",
  "fatal: sha1 file '/data/workspace/.git/index.lock' write error. Out of diskspace",
])("a full disk is known by what git says: %s", (sentence) => {
  expect(isDiskFull(new Error(sentence))).toBe(true);
});

test("a full disk is known by the system's code, and nothing else is one", () => {
  expect(isDiskFull(Object.assign(new Error("write"), { code: "ENOSPC" }))).toBe(true);
  expect(isDiskFull(Object.assign(new Error("write"), { code: "EIO" }))).toBe(false);
  expect(isDiskFull(new Error("fatal: not a git repository"))).toBe(false);
  expect(isDiskFull("no space left on device")).toBe(false);
});
