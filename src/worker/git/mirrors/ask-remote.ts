import {
  clashingPatterns,
  requireRoomFor,
  requireUnprotected,
  targetNotFound,
  workOnTarget,
} from "./branch-refusals.ts";
import { tagsIn, tagsPattern, type RemoteTag } from "./tags.ts";
import { git, tooSlow, withinMs, type GitOptions } from "../git.ts";
import { remoteError } from "../remote-error.ts";
import type { TrustedCommit } from "../remote-repository.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";

/** The remote's branches: the target, and the work branch if it exists. */
export interface RemoteHeads {
  readonly targetBranch: string;
  readonly targetSha: string;
  readonly branchSha: string | null;
  /** The target's commit, if the repository's configured branch is at the same one; null if not. */
  readonly trusted: TrustedCommit | null;
  /** All tags; some of them if there are very many. */
  readonly tags: readonly RemoteTag[];
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
    tagsPattern,
  ];
  const { defaultBranch, branches, tags, shaOf } = await askRemote(mirror, refs, options);
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
  return { targetBranch, targetSha, branchSha: shaOf(`refs/heads/${wanted.branch}`), trusted, tags };
}

/** A remote's answer about some of its refs. */
export interface RemoteRefs {
  /** Null if it does not say, or was not asked for `HEAD`. */
  readonly defaultBranch: string | null;
  /** Names of the branches in the answer. */
  readonly branches: readonly string[];
  /** The tags in the answer. */
  readonly tags: readonly RemoteTag[];
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
    tags: tagsIn(listed),
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
export async function listRefs(mirror: Mirror, parameters: readonly string[], options: GitOptions): Promise<string> {
  const limitMs = Math.min(asked.ms, transferLimits(mirror).ms);
  const bounds = { ...options, memoryBytes: asked.memoryBytes, maximumOutput: asked.outputBytes };
  const { code, stdout, stderr, retryAfterMs } = await withinMs(
    limitMs,
    bounds,
    () => tooSlow(mirror.url, "question for branches to", limitMs),
    (bounded) => git(["ls-remote", ...parameters], bounded),
  );
  if (code !== 0) throw remoteError(mirror.url, stderr, retryAfterMs);
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

/** The names of all branches of the mirror's repository, in one request to its host. */
export async function branchNames(mirror: Mirror, options: GitOptions): Promise<string[]> {
  return branchesIn(await listRefs(mirror, ["--heads", mirror.url], options));
}
