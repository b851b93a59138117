import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import type { GitCredentials } from "../../forges/forge.ts";
import { fetchObjects, type FetchLimits } from "./fetch.ts";
import { besidePatterns, requireRoomFor, targetNotFound } from "./branch-refusals.ts";
import { git, looksWithBytes, mustGit, remoteError, requireHeldGit, type GitOptions } from "./git.ts";
import { formatOf, type ObjectFormat } from "./object-format.ts";
import { pinPublicHost } from "./remote-address.ts";
import { signCommits, type Identity } from "./sign-commits.ts";
import type { Signer } from "./signer.ts";
import type { TrustedCommit } from "./remote-repository.ts";
import { directTransport, type GitTransport } from "./transport.ts";

/** Offstage's own bare repository for a remote one: fetches add to it, clones borrow from it, and no agent writes to it. */
export interface Mirror {
  readonly path: string;
  readonly url: string;
  /** Whether the URL is a path on this machine. */
  readonly local: boolean;
  /** Whether the operator named its host: it may then be in a private network. */
  readonly named: boolean;
  readonly credentials: () => Promise<GitCredentials | null>;
  /** Limits of one fetch; the defaults if omitted. */
  readonly fetchLimits?: FetchLimits;
  /** How its remote is reached; directly if omitted. */
  readonly transport?: GitTransport;
}

/** The remote's branches: the target, and the work branch if it exists. */
export interface RemoteHeads {
  readonly targetBranch: string;
  readonly targetSha: string;
  readonly branchSha: string | null;
  /** The target's commit, if the repository's configured branch is at the same one; null if not. */
  readonly trusted: TrustedCommit | null;
}

/**
 * Path of a repository's mirror: one for each URL, which all sessions with it share.
 * @param mirrors folder of all mirrors
 */
export function mirrorPath(mirrors: string, url: string): string {
  return join(mirrors, `${createHash("sha256").update(url).digest("hex").slice(0, 32)}.git`);
}

/** Name of a file in each mirror whose modification time tells when the mirror was last used. */
export const usedMark = "offstage-used";

/** Makes the mirror if it is missing, and marks it as used. */
export async function ensureMirror(mirror: Mirror, signal: AbortSignal): Promise<void> {
  if (!existsSync(mirror.path)) await makeMirror(mirror, signal);
  await writeFile(join(mirror.path, usedMark), "");
}

/** Age, in ms, after which the lock on a mirror's packed refs is a leftover: longer than git ever holds it. */
const lockLimitMs = 10_000;
const lockCheckMs = 100;

/**
 * Removes lock files of git processes that were killed along with their machine or container: those of the session's own refs,
 * which no other process writes, and the lock on all packed refs, once it is too old to be held. Waits for that one.
 * @param mirror its path
 */
export async function breakLocks(mirror: string, sessionId: string, signal: AbortSignal): Promise<void> {
  const pins = join(mirror, "refs/offstage", sessionId);
  const fetching = join(mirror, "refs/offstage/fetching");
  for (const folder of [pins, fetching]) {
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    for (const name of names) {
      const isOwn = folder === pins || name.includes(sessionId);
      if (isOwn && name.endsWith(".lock")) await rm(join(folder, name), { force: true });
    }
  }
  const list = join(mirror, "packed-refs.lock");
  for (let waitedMs = 0; waitedMs <= lockLimitMs; waitedMs += lockCheckMs) {
    const found = await stat(list).catch(() => null);
    if (found === null) return;
    if (Date.now() - found.mtimeMs > lockLimitMs) return rm(list, { force: true });
    await pause(lockCheckMs, undefined, { signal });
  }
}

/** Made in a temporary folder and renamed, so that no process sees a half-made mirror. */
async function makeMirror(mirror: Mirror, signal: AbortSignal): Promise<void> {
  const mirrors = join(mirror.path, "..");
  await mkdir(mirrors, { recursive: true, mode: 0o700 });
  const unfinished = await mkdtemp(join(mirrors, ".new-"));
  try {
    const format = await askFormat(mirror, unfinished, signal);
    await mustGit(["init", "--quiet", `--object-format=${format}`, "--bare", join(unfinished, "mirror.git")], {
      cwd: mirrors,
      signal,
    });
    await rename(join(unfinished, "mirror.git"), mirror.path);
  } catch (error) {
    // Another session made it in the meantime, which is just as good.
    if (!existsSync(mirror.path)) throw error;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/**
 * The object format of the remote. It is asked from outside of any repository: in one, git takes the repository's format for the
 * remote's, and fails if it is another.
 * @param empty path of an empty folder
 * @throws SessionError repository_*
 */
async function askFormat(mirror: Mirror, empty: string, signal: AbortSignal): Promise<ObjectFormat> {
  const options = { ...asking(await remoteOptions({ ...mirror, path: empty }, signal)), outsideRepositories: true };
  const { code, stdout, stderr } = await git(["ls-remote", mirror.url, "HEAD", "refs/heads/*"], options);
  if (code !== 0) throw remoteError(mirror.url, stderr);
  return formatOf(stdout.slice(0, stdout.indexOf("\t")));
}

/**
 * Asks the remote for its branches. `targetBranch` null means the remote's default branch.
 * @throws SessionError target_branch_not_found, branch_protected, pull_request_refused, repository_*
 */
export async function lookUpHeads(
  mirror: Mirror,
  wanted: {
    readonly targetBranch: string | null;
    /** Used instead of `targetBranch`, if the remote still has it. */
    readonly formerTarget?: string | null;
    /** The branch in the repository's own settings; null or omitted: the remote's default branch. */
    readonly configuredBranch?: string | null;
    readonly branch: string;
  },
  signal: AbortSignal,
): Promise<RemoteHeads> {
  const target = wanted.targetBranch === null ? "HEAD" : `refs/heads/${wanted.targetBranch}`;
  const { formerTarget = null, configuredBranch = null } = wanted;
  const configured = configuredBranch === null ? "HEAD" : `refs/heads/${configuredBranch}`;
  const options = await remoteOptions(mirror, signal);
  const refs = [
    "HEAD",
    target,
    configured,
    `refs/heads/${wanted.branch}`,
    ...(formerTarget === null ? [] : [`refs/heads/${formerTarget}`]),
    ...besidePatterns(wanted.branch),
  ];
  const { code, stdout, stderr } = await git(["ls-remote", "--symref", mirror.url, ...refs], asking(options));
  if (code !== 0) throw remoteError(mirror.url, stderr);
  const shaOf = (ref: string): string | null => {
    const line = stdout.split("\n").find((entry) => entry.endsWith(`\t${ref}`) && !entry.startsWith("ref: "));
    return line?.split("\t")[0] ?? null;
  };
  const defaultBranch = defaultBranchIn(stdout);
  const formerSha = formerTarget === null ? null : shaOf(`refs/heads/${formerTarget}`);
  const targetBranch = formerSha === null ? (wanted.targetBranch ?? defaultBranch ?? null) : formerTarget;
  const targetSha = formerSha ?? shaOf(target);
  if (targetBranch === null || targetSha === null) {
    throw targetNotFound(mirror.url, wanted.targetBranch, { defaultBranch, names: await branchNames(mirror, options) });
  }
  if (targetBranch === wanted.branch) throw workOnTarget(targetBranch);
  requireUnprotected(wanted.branch, [configuredBranch, defaultBranch]);
  requireRoomFor(wanted.branch, branchesIn(stdout));
  const branch = configuredBranch ?? defaultBranch ?? null;
  // Compared by commit, within this one answer of the remote: a branch of another name at the same commit has the same code. An
  // older commit of the configured branch does not count: a branch may be made at a commit that was never reviewed alone.
  const isTrusted = branch !== null && shaOf(configured) === targetSha;
  const trusted = isTrusted ? { sha: targetSha, branch, isDefault: configuredBranch === null } : null;
  return { targetBranch, targetSha, branchSha: shaOf(`refs/heads/${wanted.branch}`), trusted };
}

/** The remote's default branch, from the output of `ls-remote --symref`. */
function defaultBranchIn(said: string): string | null {
  return /^ref: refs\/heads\/([^\t\n]+)\tHEAD$/mu.exec(said)?.[1] ?? null;
}

/** The names of the branches in the output of `ls-remote`. */
function branchesIn(said: string): string[] {
  return [...said.matchAll(/^[0-9a-f]+\trefs\/heads\/([^\n]+)$/gmu)].map(([, name = ""]) => name);
}

async function branchNames(mirror: Mirror, options: GitOptions): Promise<string[]> {
  const { code, stdout, stderr } = await git(["ls-remote", "--heads", mirror.url], asking(options));
  if (code !== 0) throw remoteError(mirror.url, stderr);
  return branchesIn(stdout);
}

/**
 * Rejects a work branch that others take for reviewed code, whatever the pull request's target: anyone who may create a session
 * could name it.
 * @throws SessionError branch_protected
 */
function requireUnprotected(branch: string, own: readonly (string | null)[]): void {
  if (!own.includes(branch)) return;
  throw new SessionError({
    code: "branch_protected",
    reason: `The work branch ${branch} is the repository's own branch: nobody would review what is pushed there.`,
    retryable: false,
    remedy: "Start a session with another branchName, or without one.",
  });
}

/** Limits of `ls-remote`: a host may send endless branch names. */
const asked = { memoryBytes: 1024 ** 3, outputBytes: 1024 ** 2, ms: 5 * 60_000 };

function asking(options: GitOptions): GitOptions {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(asked.ms)]);
  return { ...options, signal, memoryBytes: asked.memoryBytes, maximumOutput: asked.outputBytes };
}

/**
 * Checked only here, since a request without a target does not know it: the work would go directly onto the branch that it is
 * to be reviewed for.
 */
function workOnTarget(branch: string): SessionError {
  return new SessionError({
    code: "pull_request_refused",
    reason: `The work branch ${branch} is also the target branch, so no pull request can be opened.`,
    retryable: false,
    remedy: "Start a session with another branchName, or without one.",
  });
}

/**
 * Fetches a branch's commit into the mirror, under a ref that also keeps it from being pruned. Nothing is fetched if the mirror
 * has the commit.
 * @param fetched.into full name of the ref
 * @throws SessionError resources_exhausted, repository_*; Error if the branch no longer has the commit
 */
export async function fetchBranch(
  mirror: Mirror,
  fetched: { readonly branch: string; readonly sha: string; readonly into: string },
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { branch, sha, into } = fetched;
  const known = await git(["cat-file", "-e", `${sha}^{commit}`], { cwd: mirror.path, signal });
  const options = { cwd: mirror.path, signal };
  if (known.code === 0) {
    await mustGit(["update-ref", into, sha], options);
    return;
  }
  // The branch may have moved since it was looked up: the commit found then counts.
  const remote = { ...(await remoteOptions(mirror, signal)), onProgress };
  await fetchObjects({ ...fetchFrom(mirror), ref: `refs/heads/${branch}`, options: remote });
  await mustGit(["update-ref", into, sha], options);
}

/** How many branches are fetched in search of a commit. */
const mostTips = 200;

/**
 * Fetches a commit by its name into the mirror, and keeps it for the next fetch to build on. A server that serves only the tips
 * of branches is asked for all of those. If the mirror has the commit, the remote is asked all the same whether these credentials
 * may read it: others may have fetched it with theirs.
 * @throws SessionError resources_exhausted, repository_*
 */
export async function fetchCommit(
  mirror: Mirror,
  sha: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const local = { cwd: mirror.path, signal };
  const hasIt = async (): Promise<boolean> => (await git(["cat-file", "-e", `${sha}^{commit}`], local)).code === 0;
  const options = { ...(await remoteOptions(mirror, signal)), onProgress };
  if (await hasIt()) {
    const { code, stderr } = await git(["ls-remote", mirror.url, "HEAD"], asking(options));
    if (code !== 0) throw remoteError(mirror.url, stderr);
    return;
  }
  try {
    await fetchObjects({ ...fetchFrom(mirror), ref: sha, options });
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== "repository_unreachable") throw error;
    const names = (await branchNames(mirror, options)).slice(0, mostTips);
    if (names.length === 0) throw error;
    await fetchObjects({ ...fetchFrom(mirror), ref: names.map((name) => `refs/heads/${name}`), options });
  }
  if (!(await hasIt())) {
    throw new SessionError({
      code: "repository_not_found",
      reason: `The repository ${mirror.url} does not have the commit ${sha}: it may not be pushed.`,
      retryable: false,
      remedy: "Push the commit, then retry.",
    });
  }
  await keepLatest(mirror, `commit-${sha}`, sha, signal);
}

const defaultFetch: FetchLimits = { bytes: 20 * 1024 ** 3, memoryBytes: looksWithBytes, ms: 60 * 60_000 };

function fetchFrom({ path, url, fetchLimits = defaultFetch }: Mirror) {
  return { mirror: path, url, limits: fetchLimits };
}

/** Keeps a branch's latest commit under a ref, so that the next fetch can build on it when no session pins it. */
export async function keepLatest(mirror: Mirror, branch: string, sha: string, signal: AbortSignal): Promise<void> {
  // Another session may be writing it at the same moment, which is just as good.
  await git(["update-ref", `refs/offstage/latest/${branch.replaceAll("/", "-")}`, sha], { cwd: mirror.path, signal });
}

/** What to push. */
export interface Push {
  readonly branch: string;
  /** The branch in the repository's own settings; null: only the remote's default branch is protected. */
  readonly configuredBranch: string | null;
  readonly sha: string;
  /**
   * Commits that the session made before: if the branch is at one of them, a worker that had lost the session pushed it late.
   */
  readonly own: ReadonlySet<string>;
  readonly author: Identity;
  /** The author, if omitted. */
  readonly committer?: Identity;
  /** Signs the commit that joins the work to what was pushed late; null or omitted: it is not signed. */
  readonly signer?: Signer | null;
  /** Message of the commit that joins the work to what was pushed late. */
  readonly message: string;
}

/**
 * Pushes a work branch, never by force. If a worker that had lost the session pushed late, the work becomes one commit on top
 * of that.
 * @returns the commit that the branch is at
 * @throws SessionError push_rejected, branch_diverged, branch_protected, resources_exhausted, repository_*
 */
export async function pushBranch(mirror: Mirror, push: Push, signal: AbortSignal): Promise<string> {
  const { branch, sha } = push;
  const options = await remoteOptions(mirror, signal);
  // The repository's own branch may have changed since the session began.
  const { tip, defaultBranch } = await lookAtBranch(mirror, branch, options);
  requireUnprotected(branch, [push.configuredBranch, defaultBranch]);
  // An earlier attempt may have pushed it before a crash.
  if (tip === sha) return sha;
  const { code, stdout, stderr } = await pushTo(mirror, branch, sha, options);
  if (code === 0) return sha;
  const error = pushError(mirror, branch, `${stdout}\n${stderr}`);
  const late = error.code === "branch_diverged" ? (await lookAtBranch(mirror, branch, options)).tip : null;
  if (late === null || !push.own.has(late)) throw error;
  const joined = await joinTo(mirror, late, push, options);
  if (joined === late) return late;
  const again = await pushTo(mirror, branch, joined, options);
  if (again.code !== 0) throw pushError(mirror, branch, `${again.stdout}\n${again.stderr}`);
  return joined;
}

async function lookAtBranch(
  mirror: Mirror,
  branch: string,
  options: GitOptions,
): Promise<{ readonly tip: string | null; readonly defaultBranch: string | null }> {
  const ref = `refs/heads/${branch}`;
  const { code, stdout, stderr } = await git(["ls-remote", "--symref", mirror.url, "HEAD", ref], asking(options));
  if (code !== 0) throw remoteError(mirror.url, stderr);
  const line = stdout.split("\n").find((entry) => entry.endsWith(`\t${ref}`) && !entry.startsWith("ref: "));
  return { tip: line?.split("\t")[0] ?? null, defaultBranch: defaultBranchIn(stdout) };
}

function pushTo(mirror: Mirror, branch: string, sha: string, options: GitOptions) {
  return git(["push", "--porcelain", "--no-verify", mirror.url, `${sha}:refs/heads/${branch}`], options);
}

/** The work as one commit on top of what was pushed late; that commit itself if its files are the same. */
async function joinTo(mirror: Mirror, late: string, push: Push, options: GitOptions): Promise<string> {
  const local = { cwd: mirror.path, signal: options.signal };
  await fetchObjects({ ...fetchFrom(mirror), ref: `refs/heads/${push.branch}`, options });
  const tree = await mustGit(["rev-parse", `${push.sha}^{tree}`], local);
  if (tree === (await mustGit(["rev-parse", `${late}^{tree}`], local))) return late;
  const { author, committer = author, signer = null, message } = push;
  const identity = [
    `author.name=${author.name}`,
    `author.email=${author.email}`,
    `committer.name=${committer.name}`,
    `committer.email=${committer.email}`,
  ].flatMap((setting) => ["-c", setting]);
  const joined = await mustGit([...identity, "commit-tree", tree, "-p", late, "-m", message], local);
  if (signer === null) return joined;
  return (await signCommits(signer, { head: joined, known: [late], committer }, local)).get(joined) ?? joined;
}

function pushError(mirror: Mirror, branch: string, said: string): SessionError {
  if (/non-fast-forward|fetch first|stale info/iu.test(said)) {
    return new SessionError({
      code: "branch_diverged",
      reason: `The branch ${branch} of ${mirror.url} has commits that this session does not know; nothing was overwritten.`,
      retryable: false,
      remedy: "Start a new session on the branch, or merge by hand: the diff is on this session.",
    });
  }
  if (/\[remote rejected\]|pre-receive|hook declined|protected branch/iu.test(said)) {
    const words = [...said.matchAll(/^remote: *(.*)$/gmu)]
      .map((line) => line[1]?.trim())
      .filter((line) => line !== "")
      .join(" ");
    return new SessionError({
      code: "push_rejected",
      reason: `The server rejected the push of ${branch}: ${words || "it gave no reason"}`.slice(0, 1_000),
      retryable: false,
      remedy: "Change the rule or hook that refused the branch, or use another branchName, then retry.",
    });
  }
  return remoteError(mirror.url, said);
}

async function remoteOptions(mirror: Mirror, signal: AbortSignal): Promise<GitOptions> {
  const { path, url, local, named, transport = directTransport } = mirror;
  const credentials = await mirror.credentials();
  const pinned = named || local ? null : await pinPublicHost(url, transport.isProxied(url));
  if (pinned !== null && pinned.address !== null && /^https?:/u.test(url)) await requireHeldGit({ cwd: path, signal });
  return { cwd: path, signal, local, remote: { url, credentials, pinned, transport } };
}
