import { SessionError } from "../../domain/errors/errors.ts";
import { git, mustGit } from "../git/git.ts";
import { fetchRefs } from "../git/mirrors/fetch-commits.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import type { RemoteRepository } from "../git/remote-repository.ts";
import type { Clone } from "./clone.ts";

/** A pull request whose commits are in a clone. */
export interface FetchedPullRequest {
  readonly headSha: string;
  /** The branch that it is to be merged into; null: it is not in the clone. */
  readonly target: string | null;
}

/**
 * Gives a new clone the commits of the pull request that its session is about, as `origin/pull/<number>`, and the
 * branch that it is to be merged into. Nothing of it is checked out: anyone who may open a pull request wrote it. If it
 * can't be fetched, the prompt says so instead of a failure.
 * @param folder of the clone, which no agent has had yet
 * @returns whether the clone got anything
 * @throws SessionError that passes by itself
 */
export async function addPullRequest(
  mirror: Mirror,
  folder: string,
  sessionId: string,
  { directory, pullRequest }: RemoteRepository,
  targetBranch: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (pullRequest === undefined || pullRequest.ref === null) return false;
  const { number, ref, target } = pullRequest;
  const into = new Map([[ref, { pin: "head", as: `pull/${number}` }]]);
  // The clone has its own target branch as of the session's beginning.
  if (target !== null && target !== targetBranch) into.set(`refs/heads/${target}`, { pin: "target", as: target });
  try {
    const found = await fetchRefs(mirror, [...into.keys()], signal);
    for (const [name, sha] of found) {
      const { pin = "", as = "" } = into.get(name) ?? {};
      await mustGit(["update-ref", `${pinOf(sessionId, directory)}/${pin}`, sha], { cwd: mirror.path, signal });
      await mustGit(["update-ref", `refs/remotes/origin/${as}`, sha], { cwd: folder, signal, mayBeOthers: true });
    }
    return found.size > 0;
  } catch (error) {
    if (!(error instanceof SessionError) || error.retryable) throw error;
    return false;
  }
}

/** The pull request as it was put into a session's clone; null: it could not be fetched. */
export async function pullRequestIn(
  { mirror, remote: { directory, pullRequest }, targetBranch }: Clone,
  sessionId: string,
  signal: AbortSignal,
): Promise<FetchedPullRequest | null> {
  const [headSha, targetSha] = await Promise.all(
    ["head", "target"].map(async (name) => {
      const asked = ["rev-parse", "--verify", "--quiet", `${pinOf(sessionId, directory)}/${name}`];
      const { code, stdout } = await git(asked, { cwd: mirror.path, signal });
      return code === 0 ? stdout.trim() : null;
    }),
  );
  if (headSha == null) return null;
  const target = pullRequest?.target ?? null;
  return { headSha, target: target === targetBranch || targetSha !== null ? target : null };
}

function pinOf(sessionId: string, directory: string): string {
  return `refs/offstage/${sessionId}/${directory}/pull-request`;
}
