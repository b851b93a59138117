import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Place } from "./github-shapes.ts";
import { gitEnvironment, type ForgeState, type TestPullRequest } from "./state.ts";

/**
 * What a forge says of whether a pull request can be merged: computed by git, once it was asked for these commits before. Until
 * then GitHub says null (https://docs.github.com/rest/pulls/pulls#get-a-pull-request), and Gitea false.
 */
export async function mergeableOf(
  state: ForgeState,
  { owner, name }: Place,
  { head, base, state: isOpen }: TestPullRequest,
  isGitea: boolean,
): Promise<boolean | null> {
  const git = (...parameters: string[]) =>
    promisify(execFile)("git", ["-C", join(state.root, owner, `${name}.git`), ...parameters], { env: gitEnvironment });
  const commits = await git("rev-parse", `refs/heads/${base}`, `refs/heads/${head}`).catch(() => null);
  if (commits === null || isOpen !== "open") return isGitea ? false : null;
  if (!state.mergeableAsked.has(commits.stdout)) {
    state.mergeableAsked.add(commits.stdout);
    return isGitea ? false : null;
  }
  return git("merge-tree", "--write-tree", ...commits.stdout.trim().split("\n")).then(
    () => true,
    () => false,
  );
}
