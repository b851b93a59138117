import { programText } from "../../programs/program-text.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import { authorVariables, git, GitError, type GitOptions, type Identity } from "../git/git.ts";
import type { Collision } from "../git/join.ts";
import { runCommand, type SandboxFolders } from "../sandboxed/run-command.ts";
import { gitlinkFunctions } from "./each-gitlink.ts";

/** Dependencies for taking commits into a clone. */
export interface TakeInServices {
  readonly sandbox: Sandbox;
  readonly limits: ResourceLimits;
  readonly author: Identity;
}

/** A clone, and what comes into it. */
export interface TakeIn {
  readonly folders: SandboxFolders;
  /** The session's work branch. */
  readonly branch: string;
  /** The commit that was exported from it. */
  readonly from: string;
  /** The commit that the clone is at, if it is another: one that has nothing beyond it. */
  readonly at?: string;
  /** The commit of the mirror from which the agent goes on, or the commits that it has to join by hand. */
  readonly to: string | Collision;
  /** Message of the commit that joins the two; its first line is in the conflict markers. */
  readonly message: string;
  readonly signal: AbortSignal;
}

/**
 * Brings a session's clone to a commit that was made outside of it, or into the middle of the merge that the agent is to finish.
 * Everything in the clone was exported before.
 * @throws SessionError resources_exhausted; Error if the agent left the clone in a state in which git can't do that
 */
export async function takeIn(
  { sandbox, limits, author }: TakeInServices,
  { folders, branch, from, at = from, to, message, signal }: TakeIn,
): Promise<void> {
  const collision = typeof to === "string" ? null : to;
  const environment = {
    ...authorVariables(author),
    OFFSTAGE_FROM: from,
    OFFSTAGE_AT: at,
    OFFSTAGE_BRANCH: branch,
    OFFSTAGE_TO: typeof to === "string" ? to : "",
    OFFSTAGE_THEIRS: collision?.theirs ?? "",
    OFFSTAGE_ONTO: collision?.onto ?? "",
    OFFSTAGE_MESSAGE: message,
  };
  const program = `${gitlinkFunctions()}\n${programText(import.meta.url, "take-in.sh")}`;
  const command = { command: "sh", arguments: ["-c", program], environment };
  await runCommand({ sandbox, limits, signal }, folders, command, (child) => void child.stdout.resume());
}

/** Lists the names of files that two commits have differently, without running anything that is configured. */
const compare = "diff --no-ext-diff --no-textconv --no-renames --name-only -z --diff-filter=d".split(" ");
/** Most files with conflict markers that are named. */
const namedLimit = 1_000;

/**
 * Files in which conflict markers of `takeIn` are left: those whose label is the whole name of a commit, or of the commit that was
 * put on top of a rewritten branch.
 * @param commits the commit to look at, and the one of the remote that was joined with it
 * @param message of `takeIn`
 */
export async function filesWithMarkers(
  commits: { readonly head: string; readonly theirs: string },
  message: string,
  options: GitOptions,
): Promise<string[]> {
  const subject = (message.split("\n", 1)[0] ?? "").replace(/[^\w ]+/gu, ".+");
  const label = `^>{7} ([0-9a-f]{40,64}|[0-9a-f]{4,64} \\(${subject}\\))`;
  const bounded = { ...options, maximumOutput: 1024 ** 2 };
  const changed = await git([...compare, `-G${label}`, commits.theirs, commits.head, "--"], bounded);
  if (changed.code !== 0) throw new GitError("diff", changed.stderr);
  const paths = partsOf(changed.stdout).slice(0, namedLimit);
  if (paths.length === 0) return [];
  // A line that was taken away is a difference too.
  const search = ["--literal-pathspecs", "grep", "-I", "-l", "-z", "-E", "-e", label, commits.head, "--", ...paths];
  const found = await git(search, bounded);
  if (found.code > 1) throw new GitError("grep", found.stderr);
  return partsOf(found.stdout).map((path) => path.slice(commits.head.length + 1));
}

function partsOf(output: string): string[] {
  return output.split("\0").filter((part) => part !== "");
}
