import { describe, expect, test } from "vitest";
import { whatToPush, type WorkState } from "./what-to-push.ts";

const base = "b".repeat(40);
const first = "1".repeat(40);
const second = "2".repeat(40);
const third = "3".repeat(40);

/** A clone that started at the base, and nothing else is known. */
const untouched: WorkState = {
  headSha: base,
  startSha: base,
  remoteSha: null,
  recordedSha: null,
  isMoved: false,
  isAhead: false,
  hasOwnCommits: false,
  pushedSha: null,
  hasPullRequest: false,
  opensPullRequests: true,
};

/** The agent committed once in this attempt. */
const worked = { headSha: first, isMoved: true, isAhead: true, hasOwnCommits: true };
/** An earlier attempt exported the same commit. */
const exportedBefore = { headSha: first, recordedSha: first, isAhead: true, hasOwnCommits: true };
const pushedBefore = { ...exportedBefore, pushedSha: first };
/** The clone was made again, from a branch at what was exported before. */
const fromBranch = { startSha: first };

describe("what is done with a repository's work", () => {
  test.each<[string, Partial<WorkState>, "publish" | "nothing"]>([
    ["an agent that did nothing", {}, "nothing"],
    ["a first commit", worked, "publish"],
    ["a first commit on a forge without pull requests", { ...worked, opensPullRequests: false }, "publish"],
    [
      "commits that go back to the base, pushed before",
      { isMoved: true, recordedSha: first, pushedSha: first },
      "publish",
    ],
    ["commits that go back to the base, never pushed", { isMoved: true, recordedSha: first }, "nothing"],
    [
      "a second commit",
      { ...worked, headSha: second, recordedSha: first, pushedSha: first, hasPullRequest: true },
      "publish",
    ],
    ["work that an earlier attempt exported and did not push", exportedBefore, "publish"],
    ["the same, exported again on another worker", { ...exportedBefore, isMoved: true }, "publish"],
    ["the same, from a branch that has it already", { ...exportedBefore, ...fromBranch }, "publish"],
    ["work of an attempt that recorded no commit", { ...exportedBefore, hasOwnCommits: false }, "publish"],
    ["work that an earlier attempt pushed without a pull request", pushedBefore, "publish"],
    ["the same on a forge without pull requests", { ...pushedBefore, opensPullRequests: false }, "nothing"],
    ["work that has its pull request", { ...pushedBefore, hasPullRequest: true }, "nothing"],
    ["work that has one, of an older push", { ...pushedBefore, recordedSha: second, headSha: second }, "publish"],
    [
      "others' commits that were taken in after the last push, and nothing more",
      { ...pushedBefore, headSha: second, remoteSha: second, isMoved: true, hasPullRequest: true },
      "nothing",
    ],
    [
      "the same after a push that got no pull request",
      { ...pushedBefore, headSha: second, remoteSha: second, isMoved: true },
      "publish",
    ],
    [
      "work that was merged with others' commits before a turn that changed nothing",
      { ...pushedBefore, headSha: third, remoteSha: second, hasPullRequest: true },
      "publish",
    ],
    ["others' commits on the work branch", { headSha: first, startSha: first, isAhead: true }, "nothing"],
    ["the session's own commits on it, merged into the base since", { ...pushedBefore, isAhead: false }, "nothing"],
  ])("%s", (_, state, decision) => {
    expect(whatToPush({ ...untouched, ...state })).toBe(decision);
  });

  test("whatever else is known, work with a pull request for its last push is left alone unless it moved", () => {
    const booleans = [false, true];
    for (const isAhead of booleans)
      for (const hasOwnCommits of booleans)
        for (const opensPullRequests of booleans)
          for (const startSha of [base, first]) {
            const known = { isAhead, hasOwnCommits, opensPullRequests, startSha };
            const published = { ...untouched, ...pushedBefore, ...known, hasPullRequest: true };
            expect(whatToPush(published)).toBe("nothing");
            expect(whatToPush({ ...published, headSha: second, isMoved: true })).toBe("publish");
          }
  });
});
