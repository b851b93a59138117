import { expect, test } from "vitest";
import { brokenWorkspace } from "../clones/import-pack.ts";
import { DamagedMirrorError, damageOf, isDamage, quotesDamage } from "./damage.ts";
import { GitError } from "./git.ts";

test.each([
  ["fatal: not a git repository (or any of the parent directories): .git", true],
  ["Resolving deltas: 100% (1/1), done.\nfatal: bad object refs/offstage/latest/main", true],
  ["fatal: unterminated line in ./packed-refs: 4bf7", true],
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

const corrupt = "fatal: loose object 25717b77 (stored in .git/objects/25/717b77) is corrupt";

test("git's words about damage are of a mirror where the server itself reads, and only quoted where an agent had the repository", () => {
  expect(damageOf(new GitError("log", `error: it breaks\n${corrupt}`))?.message).toBe(
    `This worker's own copy of the repository is damaged: ${corrupt}`,
  );
  expect(damageOf(new GitError("log", "fatal: bad revision"))).toBe(null);
  const damaged = new DamagedMirrorError(corrupt);
  expect(damageOf(damaged)).toBe(damaged);
  for (const error of [
    brokenWorkspace(corrupt),
    brokenWorkspace(`error: it breaks\n${corrupt}`),
    new Error(`a command in the folder ended with 128: error: it breaks\n${corrupt}`),
  ]) {
    expect(damageOf(error)).toBe(null);
    expect(quotesDamage(error.message)).toBe(true);
  }
  expect(quotesDamage(brokenWorkspace("fatal: bad revision").message)).toBe(false);
});
