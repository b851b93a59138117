import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import type { GitCredentials } from "../../forges/forge.ts";
import { fetchObjects, type FetchLimits } from "./fetch.ts";
import { clashingPatterns, requireRoomFor, targetNotFound } from "./branch-refusals.ts";
import { git, hasCommit, looksWithBytes, mustGit, tooSlow, withinMs, type GitOptions } from "./git.ts";
import { requireHeldGit } from "./git-version.ts";
import { remoteError } from "./remote-error.ts";
import { formatOf, type ObjectFormat } from "./object-format.ts";
import { pinPublicHost } from "./remote-address.ts";
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
  const options = { ...(await remoteOptions({ ...mirror, path: empty }, signal)), outsideRepositories: true };
  const listed = await listRefs(mirror, [mirror.url, "HEAD", "refs/heads/*"], options);
  return formatOf(listed.slice(0, listed.indexOf("\t")));
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
    ...clashingPatterns(wanted.branch),
  ];
  const { defaultBranch, branches, shaOf } = await askRemote(mirror, refs, options);
  const formerSha = formerTarget === null ? null : shaOf(`refs/heads/${formerTarget}`);
  const targetBranch = formerSha === null ? (wanted.targetBranch ?? defaultBranch ?? null) : formerTarget;
  const targetSha = formerSha ?? shaOf(target);
  if (targetBranch === null || targetSha === null) {
    throw targetNotFound(mirror.url, wanted.targetBranch, { defaultBranch, names: await branchNames(mirror, options) });
  }
  if (targetBranch === wanted.branch) throw workOnTarget(targetBranch);
  requireUnprotected(wanted.branch, [configuredBranch, defaultBranch]);
  requireRoomFor(wanted.branch, branches);
  const branch = configuredBranch ?? defaultBranch ?? null;
  // Compared by commit, within this one answer of the remote: a branch of another name at the same commit has the same code. An
  // older commit of the configured branch does not count: a branch may be made at a commit that was never reviewed alone.
  const isTrusted = branch !== null && shaOf(configured) === targetSha;
  const trusted = isTrusted ? { sha: targetSha, branch, isDefault: configuredBranch === null } : null;
  return { targetBranch, targetSha, branchSha: shaOf(`refs/heads/${wanted.branch}`), trusted };
}

/** What a remote answered about some of its refs. */
export interface RemoteRefs {
  /** Null if it does not say, or was not asked for `HEAD`. */
  readonly defaultBranch: string | null;
  /** Names of the branches in the answer. */
  readonly branches: readonly string[];
  /** The commit of a ref, by its full name; null if the remote does not have it. */
  readonly shaOf: (ref: string) => string | null;
}

/**
 * Asks a remote for refs.
 * @param options of `remoteOptions`
 * @throws SessionError repository_*
 */
export async function askRemote(mirror: Mirror, refs: readonly string[], options: GitOptions): Promise<RemoteRefs> {
  const listed = await listRefs(mirror, ["--symref", mirror.url, ...refs], options);
  const lines = listed.split("\n");
  return {
    defaultBranch: defaultBranchIn(listed),
    branches: branchesIn(listed),
    shaOf(ref) {
      const line = lines.find((entry) => entry.endsWith(`\t${ref}`) && !entry.startsWith("ref: "));
      return line?.split("\t")[0] ?? null;
    },
  };
}

/** Limits of `git ls-remote`. */
const asked = { memoryBytes: 1024 ** 3, outputBytes: 1024 ** 2, ms: 5 * 60_000 };

/**
 * Runs `git ls-remote`, within bounds: a host may send endless names, or nothing for ever.
 * @param options of `remoteOptions`
 * @returns its stdout
 * @throws SessionError repository_*
 */
async function listRefs(mirror: Mirror, parameters: readonly string[], options: GitOptions): Promise<string> {
  const limitMs = Math.min(asked.ms, transferLimits(mirror).ms);
  const bounds = { ...options, memoryBytes: asked.memoryBytes, maximumOutput: asked.outputBytes };
  const { code, stdout, stderr } = await withinMs(
    limitMs,
    bounds,
    () => tooSlow(mirror.url, "question for branches to", limitMs),
    (bounded) => git(["ls-remote", ...parameters], bounded),
  );
  if (code !== 0) throw remoteError(mirror.url, stderr);
  return stdout;
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
  return branchesIn(await listRefs(mirror, ["--heads", mirror.url], options));
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
    reason: `The work branch ${branch} is the repository's own branch: nobody would review what is pushed there.`,
    retryable: false,
    remedy: "Start a session with another branchName, or without one.",
  });
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
 * @throws SessionError resources_exhausted, repository_*; `repository_unreachable` also if the branch no longer has the commit
 */
export async function fetchBranch(
  mirror: Mirror,
  fetched: { readonly branch: string; readonly sha: string; readonly into: string },
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { branch, sha, into } = fetched;
  const options = { cwd: mirror.path, signal };
  if (await hasCommit(sha, options)) {
    await mustGit(["update-ref", into, sha], options);
    return;
  }
  // The branch may have moved since it was looked up: the commit found then counts.
  const remote = { ...(await remoteOptions(mirror, signal)), onProgress };
  await fetchObjects({ ...fetchFrom(mirror), ref: `refs/heads/${branch}`, options: remote });
  if (!(await hasCommit(sha, options))) throw replaced(mirror, branch);
  await mustGit(["update-ref", into, sha], options);
}

/**
 * Fetches refs of the remote into the mirror as they are now, without pinning them.
 * @param refs full names
 * @returns their commits, by their names; those that the remote does not have are left out
 * @throws SessionError resources_exhausted, repository_*
 */
export async function fetchRefs(
  mirror: Mirror,
  refs: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const options = await remoteOptions(mirror, signal);
  const { shaOf } = await askRemote(mirror, refs, options);
  const found = new Map<string, string>();
  for (const ref of refs) {
    const sha = shaOf(ref);
    if (sha === null) continue;
    if (!(await hasCommit(sha, { cwd: mirror.path, signal }))) {
      await fetchObjects({ ...fetchFrom(mirror), ref, options });
      if (!(await hasCommit(sha, { cwd: mirror.path, signal }))) throw replaced(mirror, ref);
    }
    found.set(ref, sha);
  }
  return found;
}

/**
 * Finds which commits of a clone are the remote's, if its server can't say it of any commit (see `knownToRemote`): those at which
 * it has a branch, and what leads to the tip of one branch, which is fetched and pinned.
 * @param sought.branch the branch that the clone's work is for
 * @param sought.pin full name of the ref below which its tip is pinned
 * @returns commits of the remote
 * @throws SessionError resources_exhausted, repository_*
 */
export async function findOnRemote(
  mirror: Mirror,
  { commits, branch, pin }: { readonly commits: ReadonlySet<string>; readonly branch: string; readonly pin: string },
  signal: AbortSignal,
): Promise<string[]> {
  const options = await remoteOptions(mirror, signal);
  const listed = await listRefs(mirror, ["--heads", mirror.url], options);
  const tips = [...listed.matchAll(/^([0-9a-f]+)\trefs\/heads\/[^\n]+$/gmu)].map(([, sha = ""]) => sha);
  const found = tips.filter((sha) => commits.has(sha));
  // Of very many branches not all are in the list.
  const { shaOf } = await askRemote(mirror, [`refs/heads/${branch}`], options);
  const tip = shaOf(`refs/heads/${branch}`);
  if (tip === null) return found;
  await fetchBranch(mirror, { branch, sha: tip, into: `${pin}/${tip}` }, () => undefined, signal);
  return [...found, tip];
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
  const options = { ...(await remoteOptions(mirror, signal)), onProgress };
  if (await hasCommit(sha, local)) {
    await listRefs(mirror, [mirror.url, "HEAD"], options);
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
  if (!(await hasCommit(sha, local))) {
    throw new SessionError({
      code: "repository_not_found",
      reason: `The repository ${mirror.url} does not have the commit ${sha}: it may not be pushed.`,
      retryable: false,
      remedy: "Push the commit, then retry.",
    });
  }
  // One name for all: else a mirror of a submodule would keep each commit that ever was recorded.
  await keepLatest(mirror, "commit", sha, signal);
}

/** A forge that lags, or somebody who rewrites the branch at this moment. */
function replaced({ url }: Mirror, branch: string): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The branch ${branch} of ${url} was replaced while it was fetched.`,
    retryable: true,
    remedy: "Retry: the branch that is there then counts.",
  });
}

/** Limits of a mirror that has none of its own. */
const defaultFetch: FetchLimits = { bytes: 20 * 1024 ** 3, memoryBytes: looksWithBytes, ms: 60 * 60_000 };

/** Limits of one fetch from a mirror's remote; of one push to it, those in time. */
export function transferLimits({ fetchLimits = defaultFetch }: Pick<Mirror, "fetchLimits">): FetchLimits {
  return fetchLimits;
}

function fetchFrom(mirror: Mirror) {
  return { mirror: mirror.path, url: mirror.url, limits: transferLimits(mirror) };
}

/** Keeps a branch's latest commit under a ref, so that the next fetch can build on it when no session pins it. */
export async function keepLatest(mirror: Mirror, branch: string, sha: string, signal: AbortSignal): Promise<void> {
  // Another session may be writing it at the same moment, which is just as good.
  await git(["update-ref", `refs/offstage/latest/${branch.replaceAll("/", "-")}`, sha], { cwd: mirror.path, signal });
}

/**
 * Options of a git process that contacts the mirror's remote: its credentials, and the address that was checked.
 * @throws SessionError repository_unreachable, repository_access_denied, forge_unavailable
 */
export async function remoteOptions(mirror: Mirror, signal: AbortSignal): Promise<GitOptions> {
  const { path, url, local, named, transport = directTransport } = mirror;
  const credentials = await mirror.credentials();
  const pinned = named || local ? null : await pinPublicHost(url, transport.isProxied(url));
  if (pinned !== null && pinned.address !== null && /^https?:/u.test(url)) await requireHeldGit({ cwd: path, signal });
  return { cwd: path, signal, local, remote: { url, credentials, pinned, transport } };
}
