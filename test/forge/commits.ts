import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { type Place, gitEnvironment, type ForgeState, type KeptPullRequest } from "./state.ts";

/** Path of a bare repository. */
export function bareOf({ root }: Pick<ForgeState, "root">, { owner, name }: Pick<Place, "owner" | "name">): string {
  return join(root, owner, `${name}.git`);
}

function git(bare: string, ...parameters: string[]): string | null {
  try {
    return execFileSync("git", ["-C", bare, ...parameters], {
      env: gitEnvironment,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return null;
  }
}

/** The commit of a branch as the repository has it; null: there is no such branch. */
export function tipOf(bare: string, branch: string): string | null {
  return git(bare, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`);
}

/** Sets a ref that no push may set. */
export function setRef(bare: string, ref: string, sha: string): void {
  git(bare, "update-ref", ref, sha);
}

/** Brings a fork's branch into the repository, as forges do of pull requests; nothing if there is none. */
export function bringFrom(bare: string, fork: string, branch: string): void {
  git(bare, "fetch", "--quiet", "--no-tags", fork, `refs/heads/${branch}`);
}

/** Copies a repository, with its default branch alone. */
export function copyTo(bare: string, fork: string): void {
  git(bare, "clone", "--quiet", "--bare", "--single-branch", bare, fork);
  git(fork, "config", "http.receivepack", "true");
}

/** Whether a branch has a commit that another commit lacks. */
export function isAhead(bare: string, headSha: string, baseSha: string): boolean {
  return git(bare, "rev-list", "--max-count=1", headSha, `^${baseSha}`) !== "";
}

/** A commit as both forges list it. */
export interface ListedCommit {
  readonly sha: string;
  readonly message: string;
  readonly tree: string;
  readonly parents: readonly string[];
  readonly author: string;
  readonly email: string;
  readonly date: string;
}

/** A commit by its name; null: there is none. */
export function commitOf(bare: string, sha: string): ListedCommit | null {
  return commitsOf(bare, sha, { baseSha: `${sha}^@` })[0] ?? null;
}

/** The merge that forges make of a branch and its target to check it, which is on no branch. @throws if the two collide */
export function mergedForChecks(bare: string, headSha: string, baseSha: string): string {
  const tree = git(bare, "merge-tree", "--write-tree", baseSha, headSha);
  const words = ["-m", `Merge ${headSha} into ${baseSha}`];
  const sha = tree === null ? null : git(bare, "commit-tree", tree, "-p", baseSha, "-p", headSha, ...words);
  if (sha === null) throw new Error(`${headSha} can't be merged into ${baseSha}`);
  return sha;
}

/** What one file is at a commit; null: there is none. */
export function fileAt(bare: string, sha: string, path: string): string | null {
  return git(bare, "cat-file", "blob", `${sha}:${path}`);
}

/** What a pull request changes in one file, as git writes it; empty: nothing. */
export function diffOf(bare: string, headSha: string, baseSha: string, path: string): string {
  return git(bare, "diff", "--no-color", `${baseSha}...${headSha}`, "--", path) ?? "";
}

/** The commits of a pull request, oldest first. */
export function commitsOf(
  bare: string,
  headSha: string,
  { baseSha }: Pick<KeptPullRequest, "baseSha">,
): ListedCommit[] {
  const format = "--format=%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%cI%x1f%s";
  const lines = git(bare, "log", "--reverse", format, headSha, `^${baseSha}`) ?? "";
  return lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [sha = "", tree = "", parents = "", author = "", email = "", date = "", message = ""] = line.split("\x1f");
      return { sha, tree, parents: parents.split(" "), author, email, date, message };
    });
}
