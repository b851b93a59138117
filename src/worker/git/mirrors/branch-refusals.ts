import { SessionError } from "../../../domain/errors/errors.ts";

/** A remote's branches, as far as a refusal names them. */
export interface RemoteBranches {
  /** The branch that the remote's HEAD names; null if HEAD names none, or one that does not exist. */
  readonly defaultBranch: string | null;
  /** Names of the branches; some of them if there are very many. */
  readonly names: readonly string[];
}

/** How many branches a message names. */
const namedLimit = 5;

/**
 * The failure of a session whose target is not on the remote.
 * @param wanted null: the remote's default branch
 */
export function targetNotFound(
  url: string,
  wanted: string | null,
  { defaultBranch, names }: RemoteBranches,
): SessionError {
  if (names.length === 0) {
    const target = wanted === null ? "" : ` and so no branch ${wanted}`;
    // It may have tags all the same.
    return refusal(
      `The repository ${url} has no branch with a commit yet${target}.`,
      "Push a first commit to a branch, then retry.",
    );
  }
  const listed = `${names.slice(0, namedLimit).join(", ")}${names.length > namedLimit ? ", …" : ""}`;
  if (wanted === null) {
    return refusal(
      `The default branch of the repository ${url} does not exist, or its HEAD names no branch; it has ${listed}.`,
      "Choose a default branch on its forge, or name a targetBranch, then start the session again.",
    );
  }
  const instead = defaultBranch === null ? `it has ${listed}` : `its default branch is ${defaultBranch}`;
  return refusal(
    `The repository ${url} has no branch ${wanted}; ${instead}.`,
    "Create the branch, or name another targetBranch; if it was renamed, change the branch in the repository's settings too, then retry.",
  );
}

function refusal(reason: string, remedy: string): SessionError {
  return new SessionError({ code: "target_branch_not_found", reason, retryable: false, remedy });
}

/** Patterns for ls-remote(1) of the branches beside which git can't store a branch: its folders, and what is below it. */
export function clashingPatterns(branch: string): string[] {
  return [...foldersOf(branch).map((folder) => `refs/heads/${folder}`), `refs/heads/${branch}/*`];
}

/**
 * Rejects a work branch whose name is a folder of another branch's name, or the other way round: git stores both at one path, so
 * the push would be refused after the agent's work.
 * @param names the remote's branches that match `clashingPatterns`, and any others
 * @throws SessionError push_rejected
 */
export function requireRoomFor(branch: string, names: readonly string[]): void {
  const folders = foldersOf(branch);
  const clashing = names.find((name) => folders.includes(name) || name.startsWith(`${branch}/`));
  if (clashing === undefined) return;
  throw new SessionError({
    code: "push_rejected",
    reason: `The repository has a branch ${clashing}, beside which the work branch ${branch} can't exist: one name is a folder of the other.`,
    retryable: false,
    remedy: `Start a session with another branchName, or delete the branch ${clashing}.`,
  });
}

/** `a` and `a/b` for `a/b/c`. */
function foldersOf(branch: string): string[] {
  const parts = branch.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

/**
 * Rejects a work branch that others take for reviewed code, whatever the pull request's target: anyone who may create a session
 * could name it.
 * @throws SessionError branch_protected
 */
export function requireUnprotected(branch: string, own: readonly (string | null)[]): void {
  if (!own.includes(branch)) return;
  throw new SessionError({
    code: "branch_protected",
    reason: `The work branch ${branch} is the repository's own branch: pushes to it would not be reviewed.`,
    retryable: false,
    remedy: "Start a session with another branchName, or without one.",
  });
}

/**
 * Checked only here, since a request without a target does not know it: the work would go directly onto the branch that it is
 * to be reviewed for.
 */
export function workOnTarget(branch: string): SessionError {
  return new SessionError({
    code: "pull_request_refused",
    reason: `The work branch ${branch} is also the target branch, so no pull request can be opened.`,
    retryable: false,
    remedy: "Start a session with another branchName, or without one.",
  });
}
