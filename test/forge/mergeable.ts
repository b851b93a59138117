import { execFileSync } from "node:child_process";
import { bareOf } from "./commits.ts";
import { gitEnvironment, type ForgeState, type Place, type TestPullRequest } from "./state.ts";

/**
 * What a forge says of whether a pull request can be merged: computed by git, once it was asked for these commits before. Until
 * then GitHub says null (https://docs.github.com/rest/pulls/pulls#get-a-pull-request), and Gitea false.
 */
export function mergeableOf(
  state: ForgeState,
  place: Place,
  { head, base, state: isOpen }: TestPullRequest,
  isGitea: boolean,
): boolean | null {
  const git = (...parameters: string[]): string | null => {
    try {
      return execFileSync("git", ["-C", bareOf(state, place), ...parameters], {
        env: gitEnvironment,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
    } catch {
      return null;
    }
  };
  const commits = git("rev-parse", `refs/heads/${base}`, `refs/heads/${head}`);
  if (commits === null || isOpen !== "open") return isGitea ? false : null;
  if (!state.mergeableAsked.has(commits)) {
    state.mergeableAsked.add(commits);
    return isGitea ? false : null;
  }
  return git("merge-tree", "--write-tree", ...commits.trim().split("\n")) !== null;
}
