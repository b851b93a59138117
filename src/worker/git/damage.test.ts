import { expect, test } from "vitest";
import { isDamage } from "./damage.ts";

test.each([
  ["fatal: not a git repository (or any of the parent directories): .git", true],
  ["Resolving deltas: 100% (1/1), done.\nfatal: bad object refs/offstage/latest/main", true],
  ["git update-ref failed: fatal: unterminated line in ./packed-refs: 4bf7", true],
  [
    "error: inflate: data stream error\nfatal: packed object 25717b77 (stored in ./objects/pack/pack-1.pack) is corrupt",
    true,
  ],
  // What the remote has, and what it sent.
  ["remote: fatal: packed object 25717b77 (stored in ./objects/pack/pack-1.pack) is corrupt\nfatal: early EOF", false],
  ["error: inflate: data stream error (incorrect header check)\nfatal: pack has bad object at offset 12", false],
  ["fatal: '/srv/app' does not appear to be a git repository", false],
  ["fatal: unable to access 'https://git.example.com/a/b/': Could not resolve host: git.example.com", false],
])("of git's words %j it is told whether they are about damage of this machine's", (said, expected) => {
  expect(isDamage(said)).toBe(expected);
});
