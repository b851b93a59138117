import { SessionError } from "../../domain/errors/errors.ts";
import { git, tooSlow, withinMs, type GitOptions, type Identity } from "./git.ts";
import { isWithin, joinCommits, type Collision } from "./join.ts";
import { askRemote, fetchBranch, remoteOptions, requireUnprotected, transferLimits, type Mirror } from "./mirror.ts";
import { isBranchMoved, pushError } from "./push-refusal.ts";
import type { Signer } from "./signer.ts";

/** What to push. */
export interface Push {
  readonly branch: string;
  /** The branch in the repository's own settings; null: only the remote's default branch is protected. */
  readonly configuredBranch: string | null;
  readonly sha: string;
  /** Commits that the session made before: a worker that had lost the session may have pushed one of them late. */
  readonly own: ReadonlySet<string>;
  /** The commit of the session's last push; null if nothing was pushed. */
  readonly pushed: string | null;
  /** Full name of the ref that keeps what others committed in the mirror. */
  readonly pin: string;
  readonly author: Identity;
  /** The author, if omitted. */
  readonly committer?: Identity;
  /** Signs the commit that joins the work to what others committed; null or omitted: it is not signed. */
  readonly signer?: Signer | null;
  /** Message of the commit that joins the work to what others committed. */
  readonly message: string;
  /** Called before each push: @throws if the session is another worker's by now. The remote knows no fence. */
  readonly requireClaim: () => Promise<void>;
  /**
   * Called before a commit is pushed that joins the work with what others committed, `theirs`: @throws if it may not be pushed.
   */
  readonly requireClean: (joined: string, theirs: string) => Promise<void>;
  /**
   * Asked if the branch that the session pushed is gone, and the work has nothing new since: whether to make it again.
   */
  readonly mayRecreate: () => Promise<boolean>;
}

/**
 * How a push ended:
 * - `pushed`: the branch is at `sha`: the work, or the work joined with what others had committed
 * - `collided`: what others committed and the work do not go together by themselves; nothing was pushed
 * - `gone`: the branch was deleted, and is left so
 */
export type PushEnd =
  | { readonly kind: "pushed"; readonly sha: string }
  | ({ readonly kind: "collided" } & Collision)
  | { readonly kind: "gone" };

/** How often a branch may move while it is pushed. */
const rounds = 5;

/**
 * Pushes a work branch, never by force. What others committed meanwhile is fetched and joined with the work (`joinCommits`).
 * @throws SessionError push_rejected, branch_diverged, branch_protected, resources_exhausted, repository_*; what `requireClaim`
 *   throws
 */
export async function pushBranch(mirror: Mirror, push: Push, signal: AbortSignal): Promise<PushEnd> {
  const { branch, sha } = push;
  const options = await remoteOptions(mirror, signal);
  for (let round = 1; ; round += 1) {
    const { defaultBranch, shaOf } = await askRemote(mirror, ["HEAD", `refs/heads/${branch}`], options);
    // The repository's own branch may have changed since the session began.
    requireUnprotected(branch, [push.configuredBranch, defaultBranch]);
    const tip = shaOf(`refs/heads/${branch}`);
    // An earlier attempt may have pushed it before a crash.
    if (tip === sha) return { kind: "pushed", sha };
    if (tip === null && (await isLeftGone(mirror, push, options))) return { kind: "gone" };
    const joined = tip === null ? sha : await joinTip(mirror, push, tip, signal);
    if (typeof joined !== "string") return { kind: "collided", ...joined };
    if (joined === tip) return { kind: "pushed", sha: joined };
    if (joined !== sha && tip !== null) await push.requireClean(joined, tip);
    await push.requireClaim();
    const { code, stdout, stderr } = await pushTo(mirror, branch, joined, options);
    if (code === 0) return { kind: "pushed", sha: joined };
    if (!isBranchMoved(stdout)) throw pushError({ url: mirror.url, branch, stdout, stderr });
    if (round === rounds) throw keepsMoving(mirror, branch);
  }
}

async function isLeftGone(mirror: Mirror, push: Push, options: GitOptions): Promise<boolean> {
  const { pushed, sha } = push;
  if (pushed === null || !(await isWithin(sha, pushed, { cwd: mirror.path, signal: options.signal }))) return false;
  return !(await push.mayRecreate());
}

/** @returns the commit to push: the work itself, or the work with what others committed */
async function joinTip(mirror: Mirror, push: Push, tip: string, signal: AbortSignal): Promise<string | Collision> {
  const { branch, sha, pin } = push;
  await fetchBranch(mirror, { branch, sha: tip, into: `${pin}/${tip}` }, () => undefined, signal);
  const join = await joinCommits({ ...push, ours: sha, theirs: tip }, { cwd: mirror.path, signal });
  if (join.kind === "ours") return sha;
  return join.kind === "joined" ? join.sha : join;
}

function pushTo(mirror: Mirror, branch: string, sha: string, options: GitOptions) {
  const limitMs = transferLimits(mirror).ms;
  const parameters = ["push", "--porcelain", "--no-verify", mirror.url, `${sha}:refs/heads/${branch}`];
  return withinMs(
    limitMs,
    options,
    () => tooSlow(mirror.url, "push to", limitMs),
    (bounded) => git(parameters, bounded),
  );
}

function keepsMoving({ url }: Mirror, branch: string): SessionError {
  return new SessionError({
    code: "branch_diverged",
    reason: `The branch ${branch} of ${url} moved ${rounds} times while this session pushed to it; nothing was overwritten.`,
    retryable: true,
    remedy: "Retry when nobody else pushes to the branch.",
  });
}
