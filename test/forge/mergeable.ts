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

/**
 * Merges a pull request into its target with git: a merge commit of both.
 * @returns where the target was, and is now
 * @throws Error if there is no such pull request, or it collides with its target
 */
export function mergeInto(
  state: ForgeState,
  place: Place,
  number: number,
): { readonly branch: string; readonly before: string; readonly after: string } {
  const pull = state.pulls.get(`${place.owner}/${place.name}`)?.find((each) => each.number === number);
  if (pull?.state !== "open") throw new Error(`there is no open pull request #${number}`);
  const git = (...parameters: string[]): string =>
    execFileSync("git", ["-C", bareOf(state, place), ...parameters], { env: gitEnvironment, encoding: "utf8" }).trim();
  const [before, head] = [git("rev-parse", `refs/heads/${pull.base}`), git("rev-parse", `refs/heads/${pull.head}`)];
  const tree = git("merge-tree", "--write-tree", before, head).split("\n")[0] ?? "";
  const after = git("commit-tree", tree, "-p", before, "-p", head, "-m", `Merge pull request #${number}`);
  git("update-ref", `refs/heads/${pull.base}`, after, before);
  return { branch: pull.base, before, after };
}
