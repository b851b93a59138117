import { git, tooSlow, withinMs, type GitOptions } from "../git.ts";
import { joinCommits, type Collision, type JoinRequest } from "../join.ts";
import { askRemote } from "./ask-remote.ts";
import { fetchBranch } from "./fetch-commits.ts";
import { requireUnprotected } from "./branch-refusals.ts";
import type { SessionError } from "../../../domain/errors/errors.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";
import { isBranchMoved, pushError } from "./push-refusal.ts";

/**
 * Asks the remote for the work branch, which is not to be pushed to if it is the repository's own.
 * @param asked.configuredBranch the branch in the repository's own settings; null: only the remote's default branch is protected
 * @param options of `remoteOptions`
 * @returns the commit that the branch is at; null if the remote does not have it
 * @throws SessionError branch_protected, repository_*
 */
export async function findTip(
  mirror: Mirror,
  { branch, configuredBranch }: { readonly branch: string; readonly configuredBranch: string | null },
  options: GitOptions,
): Promise<string | null> {
  const { defaultBranch, shaOf } = await askRemote(mirror, ["HEAD", `refs/heads/${branch}`], options);
  // The repository's own branch may have changed since the session began.
  requireUnprotected(branch, [configuredBranch, defaultBranch]);
  return shaOf(`refs/heads/${branch}`);
}

/** Work, and the tip of its branch on the remote: `theirs`. */
export interface TipJoin extends JoinRequest {
  /** Full name of the ref below which the mirror keeps others' commits. */
  readonly pin: string;
}

/**
 * Fetches the tip of a work branch, and joins the work with it (`joinCommits`).
 * @returns the commit to push: the work itself, the work joined with others' commits, or the tip if it has all of the
 *   work; a collision if git can't join the two
 * @throws SessionError branch_diverged, resources_exhausted, repository_*
 */
export async function joinWithTip(
  mirror: Mirror,
  { pin, ...request }: TipJoin,
  signal: AbortSignal,
): Promise<string | Collision> {
  const { branch, ours, theirs } = request;
  await fetchBranch(mirror, { branch, sha: theirs, into: `${pin}/${theirs}` }, () => undefined, signal);
  const join = await joinCommits(request, { cwd: mirror.path, signal });
  if (join.kind === "ours") return ours;
  return join.kind === "joined" ? join.sha : join;
}

/** Most time of a question whether a push would be let in, in ms. */
const askedMs = 60_000;
const outputBytes = 64 * 1024;

/**
 * Asks the remote whether it lets this credential push, as git does before each push, and sends nothing. The mirror needs to have no
 * commit yet: what would be pushed is that a ref which no repository has goes away.
 * @param branch the work branch, for a message
 * @returns why it does not; null if it does, or can't be asked now
 */
export async function pushAccessRefusal(
  mirror: Mirror,
  branch: string,
  signal: AbortSignal,
): Promise<SessionError | null> {
  const limitMs = Math.min(askedMs, transferLimits(mirror).ms);
  const parameters = ["push", "--dry-run", "--porcelain", "--no-verify", mirror.url, ":refs/offstage/may-push"];
  const bounds = { ...(await remoteOptions(mirror, signal)), maximumOutput: outputBytes };
  const result = await withinMs(
    limitMs,
    bounds,
    () => tooSlow(mirror.url, "question for the right to push to", limitMs),
    (bounded) => git(parameters, bounded),
  );
  // Git itself holds it back, after the server has let it ask: there is no such ref.
  if (result.code === 0 || result.stdout.includes("\n!\t")) return null;
  const error = pushError({ url: mirror.url, branch, ...result });
  return error.code === "repository_access_denied" || error.code === "repository_not_found" ? error : null;
}

/**
 * Pushes one commit to a branch, never by force.
 * @param options of `remoteOptions`
 * @returns the refusal if that says that the branch has commits that the pushed one lacks, or moved meanwhile: nothing was pushed
 * @throws SessionError push_rejected, repository_*
 */
export async function pushCommit(
  mirror: Mirror,
  { branch, sha }: { readonly branch: string; readonly sha: string },
  options: GitOptions,
): Promise<"pushed" | SessionError> {
  const limitMs = transferLimits(mirror).ms;
  const parameters = ["push", "--porcelain", "--no-verify", mirror.url, `${sha}:refs/heads/${branch}`];
  const result = await withinMs(
    limitMs,
    options,
    () => tooSlow(mirror.url, "push to", limitMs),
    (bounded) => git(parameters, bounded),
  );
  if (result.code === 0) return "pushed";
  const refusal = pushError({ url: mirror.url, branch, ...result });
  if (isBranchMoved(result.stdout)) return refusal;
  throw refusal;
}
