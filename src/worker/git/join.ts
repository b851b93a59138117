import { SessionError } from "../../domain/errors/errors.ts";
import { git, GitError, mustGit, withinMs, type GitOptions, type Identity } from "./git.ts";
import { canMerge } from "./git-version.ts";
import { withMergeAttributes } from "./merge-attributes.ts";
import { signCommits } from "./sign-commits.ts";
import type { Signer } from "./signer.ts";

/** Two lines of work on one branch, whose commits are all in one repository of Offstage's. */
export interface JoinRequest {
  readonly branch: string;
  /** The commit of the session's work. */
  readonly ours: string;
  /** The commit that others left the branch at. */
  readonly theirs: string;
  /** The commit of the session's last push; null if nothing was pushed. */
  readonly pushed: string | null;
  /** Commits that the session made. */
  readonly own: ReadonlySet<string>;
  /** The commit of the target branch that the session's work is on; omitted: one that the branch has. */
  readonly base?: string;
  readonly author: Identity;
  /** The author, if omitted. */
  readonly committer?: Identity;
  /** Signs the commit that joins the two; null or omitted: it is not signed. */
  readonly signer?: Signer | null;
  /** Message of a commit that puts the work on top of theirs. */
  readonly message: string;
}

/**
 * How two lines of work go together:
 * - `ours`: the session's commit has theirs already
 * - `joined`: `sha` has both; it is their commit itself if that has all of the session's work
 * - `collided`: both changed the same places, in the files `paths`. `onto` says how they are to be joined by hand: null by a
 *   merge; otherwise what the session did since that commit is put on top of theirs
 */
export type Join =
  | { readonly kind: "ours" }
  | { readonly kind: "joined"; readonly sha: string }
  | ({ readonly kind: "collided" } & Collision);

/** See `Join`. */
export interface Collision {
  readonly theirs: string;
  readonly paths: readonly string[];
  readonly onto: string | null;
}

/** Bound on one merge, in ms: git compares files of any content. */
const mergeLimitMs = 10 * 60_000;
/** Bytes of the list of files that collide. */
const listLimit = 1024 ** 2;

/**
 * Joins the session's work with others' commits on its branch, and loses nothing of either:
 * - A branch that lacks the commit which the session pushed was rewritten. Then theirs is the base, and only what the session did
 *   since its push goes on top of it, as one commit: what they took out does not come back.
 * - If all that the branch has beyond the session's work are commits of the session itself (the agent rewrote or took back what
 *   was pushed, or a worker that had lost the session pushed late), the work goes on top, as one commit; as a merge with the work's
 *   files if that is on a commit of the target which the branch lacks, so that nothing of the target counts as the session's. A late
 *   push that has all of the work stays as it is.
 * - Otherwise it is a merge with two parents.
 * Nothing is checked out: git merges trees in memory (git-merge-tree(1)).
 * @param options of the repository; no remote is contacted
 * @throws SessionError branch_diverged if the two have no commit in common, resources_exhausted
 */
export async function joinCommits(request: JoinRequest, options: GitOptions): Promise<Join> {
  const { ours, theirs, pushed, message, base } = request;
  const hasPushed = pushed === null || (await isWithin(pushed, ours, options));
  if (pushed !== null && hasPushed && !(await isWithin(pushed, theirs, options)))
    return joinRewritten(request, pushed, options);
  if (await isWithin(theirs, ours, options)) return { kind: "ours" };
  const isOwn = await isOwnAlone(request, options);
  const tookBack = !hasPushed && isOwn;
  if (!tookBack && (await isWithin(ours, theirs, options))) return { kind: "joined", sha: theirs };
  if (isOwn) {
    const tree = await mustGit(["rev-parse", `${ours}^{tree}`], options);
    if (base === undefined || (await isWithin(base, theirs, options)))
      return { kind: "joined", sha: await commitOnto(request, tree, options) };
    const words = `Merge what ${request.branch} had\n\n${message.split("\n", 1)[0] ?? ""}`;
    return { kind: "joined", sha: await signedCommit(request, tree, [theirs, ours], words, options) };
  }
  const { code } = await git(["merge-base", ours, theirs], options);
  if (code !== 0) throw unrelated(request);
  const merged = await mergeTrees(ours, theirs, options);
  if (merged.paths.length > 0) return { kind: "collided", theirs, paths: merged.paths, onto: null };
  const subject = message.split("\n", 1)[0] ?? "";
  const words = `Merge what others committed to ${request.branch}\n\n${subject}`;
  return { kind: "joined", sha: await signedCommit(request, merged.tree, [ours, theirs], words, options) };
}

/** Joins the session's work since `pushed` on top of a branch that others rewrote. */
async function joinRewritten(request: JoinRequest, pushed: string, options: GitOptions): Promise<Join> {
  const { ours, theirs } = request;
  if (ours === pushed) return { kind: "joined", sha: theirs };
  // Two commits on the same one make that one the base of their merge.
  const since = await recommit(request, ours, pushed, options);
  const rewritten = await recommit(request, theirs, pushed, options);
  const { tree, paths } = await mergeTrees(rewritten, since, options);
  if (paths.length > 0) return { kind: "collided", theirs, paths, onto: pushed };
  return { kind: "joined", sha: await commitOnto(request, tree, options) };
}

/** A commit with the files of `of`, on top of another commit. */
async function recommit(request: JoinRequest, of: string, parent: string, options: GitOptions): Promise<string> {
  const tree = await mustGit(["rev-parse", `${of}^{tree}`], options);
  return commit(request, tree, [parent], "files", options);
}

/** One commit on top of theirs; theirs itself if the files are the same. */
async function commitOnto(request: JoinRequest, tree: string, options: GitOptions): Promise<string> {
  const { theirs, message } = request;
  if (tree === (await mustGit(["rev-parse", `${theirs}^{tree}`], options))) return theirs;
  return signedCommit(request, tree, [theirs], message, options);
}

/** A commit that is pushed: signed, if the session's commits are. */
async function signedCommit(
  request: JoinRequest,
  tree: string,
  parents: readonly string[],
  message: string,
  options: GitOptions,
): Promise<string> {
  const { author, committer = author, signer = null } = request;
  const made = await commit(request, tree, parents, message, options);
  if (signer === null) return made;
  return (await signCommits(signer, { head: made, known: parents, committer }, options)).get(made) ?? made;
}

function commit(
  { author, committer = author }: JoinRequest,
  tree: string,
  parents: readonly string[],
  message: string,
  options: GitOptions,
): Promise<string> {
  const identity = [
    `author.name=${author.name}`,
    `author.email=${author.email}`,
    `committer.name=${committer.name}`,
    `committer.email=${committer.email}`,
  ].flatMap((setting) => ["-c", setting]);
  return mustGit(
    [...identity, "commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent]), "-m", message],
    options,
  );
}

/** Whether `other` is at a commit or after it; also false if the repository lacks the commit. */
export async function isWithin(sha: string, other: string, options: GitOptions): Promise<boolean> {
  if (sha === other) return true;
  const { code } = await git(["merge-base", "--is-ancestor", sha, other], options);
  return code === 0;
}

/** Whether two commits have no commit in common; also false if the repository lacks one of them. */
export async function areUnrelated(one: string, other: string, options: GitOptions): Promise<boolean> {
  return (await git(["merge-base", one, other], options)).code === 1;
}

/** Whether everything that theirs has beyond ours are commits of the session. */
async function isOwnAlone({ ours, theirs, own }: JoinRequest, options: GitOptions): Promise<boolean> {
  if (!own.has(theirs)) return false;
  const beyond = await mustGit(["rev-list", `--max-count=${own.size + 1}`, theirs, "--not", ours], options);
  return beyond.split("\n").every((sha) => own.has(sha));
}

/** Merges two commits in memory, by the attributes of the first. @returns the tree, and the files that collide: with some, the tree holds conflict markers */
async function mergeTrees(
  ours: string,
  theirs: string,
  options: GitOptions,
): Promise<{ readonly tree: string; readonly paths: readonly string[] }> {
  const merge = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
  const listing = { ...options, maximumOutput: listLimit };
  const { code, stdout, stderr } = await withinMs(mergeLimitMs, listing, tooMuch, (bounded) =>
    withMergeAttributes(ours, bounded, (attributed) => git(merge, attributed)),
  );
  const [tree = "", ...paths] = stdout.split("\0").filter((part) => part !== "");
  if (code === 0) return { tree, paths: [] };
  if (code === 1) return { tree, paths: paths.length === 0 ? ["."] : [...new Set(paths)] };
  const version = await mustGit(["--version"], options);
  if (!canMerge(version)) throw tooOld(version);
  throw new GitError("merge-tree", stderr);
}

function unrelated({ branch }: JoinRequest): SessionError {
  return new SessionError({
    code: "branch_diverged",
    reason: `The branch ${branch} has another history by now, without any commit in common with this session's work; nothing was overwritten.`,
    retryable: false,
    remedy: "Start a new session on the branch, or with another branchName: the diff is on this session.",
  });
}

function tooOld(version: string): SessionError {
  return new SessionError({
    code: "branch_diverged",
    reason: `Others committed to the branch, and this worker's git is too old to merge that with the session's work (${version}).`,
    retryable: false,
    remedy: "Install git 2.38 or newer on the worker, then retry.",
  });
}

function tooMuch(): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `Merging what others committed with this session's work took more than ${mergeLimitMs / 60_000} min.`,
    retryable: false,
    remedy: "Merge by hand: the diff is on this session.",
  });
}
