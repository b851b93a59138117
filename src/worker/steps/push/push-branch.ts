import { SessionError } from "../../../domain/errors/errors.ts";
import type { RepositoryAddress } from "../../../domain/repositories/repository.ts";
import { holdClaim } from "../../../store/queue/lease.ts";
import { noteCommit } from "../../../store/queue/recorded-commits.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { theirsRef } from "../../clones/exported-refs.ts";
import { isWithin, type Collision } from "../../git/join.ts";
import { remoteOptions, type Mirror } from "../../git/mirrors/mirror.ts";
import { findTip, joinWithTip, pushCommit } from "../../git/mirrors/push.ts";
import type { ClonedWork } from "../commit/export-work.ts";
import { knownPullRequest } from "../pull-requests/known.ts";
import { recordPullRequest } from "../pull-requests/record.ts";
import { requireNoSecret } from "../commit/require-no-secret.ts";
import type { PushDestination } from "./where-to-push.ts";

/**
 * How a push ended:
 * - `pushed`: the branch is at `sha`: the work, or the work joined with others' commits
 * - `collided`: git can't join others' commits and the work; nothing was pushed
 * - `gone`: the branch was deleted, and is left so
 */
export type PushEnd =
  | { readonly kind: "pushed"; readonly sha: string }
  | ({ readonly kind: "collided" } & Collision)
  | { readonly kind: "gone" };

/** Services of the worker for pushing one branch. */
export type BranchServices = Pick<AttemptServices, "database" | "author" | "committer" | "signer" | "forgeOf">;

/** How often a branch may move while it is pushed. */
const mostTries = 5;

/**
 * Pushes a work branch, never by force. Others' commits since the last fetch are fetched and joined with the work.
 * Before each push the claim is checked, because the remote knows no fence, and a commit that joins the two is searched
 * for secrets.
 * @throws SessionError push_rejected, branch_diverged, branch_protected, secret_in_work, token_in_work, resources_exhausted,
 *   repository_*; LeaseLostError
 */
export async function pushBranch(
  attempt: Attempt,
  services: BranchServices,
  work: ClonedWork,
  { mirror, fork }: PushDestination,
): Promise<PushEnd> {
  const { session, signal } = attempt;
  const { database } = services;
  const { branch, configuredBranch = null } = work.clone.remote;
  const options = await remoteOptions(mirror, signal);
  let refused: { readonly tip: string | null; readonly refusal: SessionError } | null = null;
  for (let nth = 1; nth <= mostTries; nth += 1) {
    const tip = await findTip(mirror, { branch, configuredBranch }, options);
    // An earlier attempt may have pushed it before a crash.
    if (tip === work.headSha) return { kind: "pushed", sha: tip };
    // A server that can't write the branch says the same as of one that moved.
    if (refused !== null && refused.tip === tip) throw refused.refusal;
    if (tip === null && (await isLeftGone(attempt, services, work, fork))) return { kind: "gone" };
    const joined: string | Collision =
      tip === null ? work.headSha : await joinTip(attempt, services, work, { mirror, tip });
    if (typeof joined !== "string") return { kind: "collided", ...joined };
    if (joined === tip) return { kind: "pushed", sha: joined };
    if (joined !== work.headSha && tip !== null) await requireClean(attempt, services, work, { joined, tip });
    await database.transaction(async (transaction) => {
      await holdClaim(transaction, session);
      // Before it is pushed: the forge may deliver the push before its end is recorded, and the commit is the
      // session's.
      await noteCommit(transaction, session, { position: work.recorded.position, sha: joined });
    });
    const end = await pushCommit(mirror, { branch, sha: joined }, options);
    if (end === "pushed") return { kind: "pushed", sha: joined };
    refused = { tip, refusal: end };
  }
  throw keepsMoving(mirror, branch);
}

/** The commit to push: the work joined with the branch's tip; a collision if git can't join the two. */
function joinTip(
  { session, mask, signal }: Attempt,
  { author, committer, signer }: BranchServices,
  { clone, recorded, headSha }: ClonedWork,
  { mirror, tip }: { readonly mirror: Mirror; readonly tip: string },
): Promise<string | Collision> {
  const { branch, directory } = clone.remote;
  const pin = theirsRef(session.sessionId, directory);
  const { pushedSha: pushed, commits: own } = recorded;
  const sides = { branch, ours: headSha, theirs: tip, pushed, own, base: clone.baseSha };
  const message = mask.text(session.title);
  return joinWithTip(mirror, { ...sides, pin, author, committer, signer, message }, signal);
}

/**
 * Searches what a commit adds that joins the work with the branch's tip: two halves of a secret may come together in it.
 * @throws SessionError secret_in_work, token_in_work, resources_exhausted
 */
function requireClean(
  attempt: Attempt,
  services: Pick<BranchServices, "database">,
  work: ClonedWork,
  { joined, tip }: { readonly joined: string; readonly tip: string },
): Promise<void> {
  const known = { ...work.clone, theirs: [...(work.clone.theirs ?? []), tip, work.headSha] };
  return requireNoSecret(attempt, services, known, { ...work, headSha: joined }, work.lfs);
}

/** Whether a branch that is gone stays so: the session had pushed it, and the work has nothing new since. */
async function isLeftGone(
  attempt: Attempt,
  services: Pick<BranchServices, "database" | "forgeOf">,
  work: ClonedWork,
  fork: RepositoryAddress | undefined,
): Promise<boolean> {
  const { pushedSha } = work.recorded;
  const { mirror, baseSha } = work.clone;
  const options = { cwd: mirror.path, signal: attempt.signal };
  if (pushedSha === null) return false;
  const isOld = (await isWithin(work.headSha, pushedSha, options)) || (await isWithin(work.headSha, baseSha, options));
  if (!isOld) return false;
  return !(await mayRecreate(attempt, services, work, fork));
}

/**
 * Whether to make a branch again that the session had pushed, that is gone, and to which nothing is to be added: not if its pull
 * request was merged or closed, or the forge has none. That pull request is then recorded.
 */
async function mayRecreate(
  attempt: Attempt,
  services: Pick<BranchServices, "database" | "forgeOf">,
  { clone, recorded }: ClonedWork,
  fork: RepositoryAddress | undefined,
): Promise<boolean> {
  const { session, signal, emit } = attempt;
  const { repository, address, targetBranch: target } = clone;
  const head = session.branchName;
  const forge = services.forgeOf(address);
  const known = await knownPullRequest(attempt, services, forge, clone, target);
  const found =
    known ?? (forge.opensPullRequests ? await forge.findPullRequest(address, head, target, signal, fork) : null);
  if (forge.opensPullRequests && (found === null || found.state === "open")) return true;
  if (found !== null) {
    const headSha = recorded.pushedSha ?? clone.headSha;
    await recordPullRequest(attempt, services, { ...found, clone, headSha });
  }
  const why =
    found === null ? "it was deleted" : `it was deleted after pull request #${found.number} was ${found.state}`;
  const text = `The branch ${head} of ${repository.name} was not pushed again: ${why}, and nothing was added since.`;
  await emit({ type: "notice", data: { level: "info", text } });
  return false;
}

function keepsMoving({ url }: Mirror, branch: string): SessionError {
  return new SessionError({
    code: "branch_diverged",
    reason: `The branch ${branch} of ${url} moved ${mostTries} times while this session pushed to it; nothing was overwritten.`,
    retryable: true,
    remedy: "Retry when no others push to the branch.",
  });
}
