import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { underClaim } from "../../store/queue/lease.ts";
import { saveRepository } from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { theirsRef } from "../clones/export-repository.ts";
import type { Collision } from "../git/join.ts";
import { uploadContents } from "../git/lfs.ts";
import { pushBranch, type PushEnd } from "../git/push.ts";
import type { ClonedWork } from "./export-work.ts";
import { recordPullRequest } from "./record-pull-request.ts";
import { requireNoSecret } from "./require-no-secret.ts";
import { whereToPush, type PushTarget } from "./where-to-push.ts";

/** Work whose branch is on the remote. */
export interface PushedWork extends ClonedWork {
  /** The commit that the branch is at: the exported one, or what joins it with the commits of others. */
  readonly pushedSha: string;
  /** The fork that has the branch; undefined: the repository itself. */
  readonly fork: RepositoryAddress | undefined;
}

/** Work that does not go together with what others committed to its branch: nothing of it was pushed. */
export interface CollidedWork {
  readonly work: ClonedWork;
  readonly collision: Collision;
}

/** What pushing needs of the worker. */
export type PushServices = Pick<
  AttemptServices,
  "database" | "traces" | "author" | "committer" | "signer" | "forgeOf" | "forks"
>;

/**
 * Pushes each changed repository's work branch from the mirror, joined with what others committed to it. A branch that is at the
 * commit already is not pushed again; one that was deleted when its pull request ended is not made again.
 * @throws SessionError push_rejected, branch_diverged, branch_protected, resources_exhausted, repository_*; LeaseLostError
 */
export async function push(
  attempt: Attempt,
  services: PushServices,
  changes: readonly ClonedWork[],
): Promise<{ readonly pushed: PushedWork[]; readonly collided: CollidedWork[] }> {
  const pushed: PushedWork[] = [];
  const collided: CollidedWork[] = [];
  for (const work of changes) {
    const target = await whereToPush(attempt, services, work.clone);
    const end = await pushWork(attempt, services, work, target);
    if (end.kind === "collided") collided.push({ work, collision: end });
    if (end.kind === "pushed")
      pushed.push(await recordPush(attempt, services, work, { sha: end.sha, fork: target.fork }));
  }
  return { pushed, collided };
}

async function pushWork(
  attempt: Attempt,
  services: PushServices,
  work: ClonedWork,
  { mirror, fork }: PushTarget,
): Promise<PushEnd> {
  const { session, mask, signal } = attempt;
  const { database, traces, author, committer, signer } = services;
  const { repository, remote } = work.clone;
  const request = {
    branch: remote.branch,
    configuredBranch: remote.configuredBranch ?? null,
    sha: work.headSha,
    own: work.recorded.commits,
    pushed: work.recorded.pushedSha,
    pin: theirsRef(session.sessionId, remote.directory),
    message: mask.text(session.title),
    author,
    committer,
    signer,
    requireClaim: () => underClaim(database, session, () => Promise.resolve()),
    requireClean: (joined: string, theirs: string) => {
      const known = { ...work.clone, theirs: [...(work.clone.theirs ?? []), theirs, work.headSha] };
      return requireNoSecret(attempt, services, known, { ...work, headSha: joined }, work.lfs);
    },
    mayRecreate: () => mayRecreate(attempt, services, work, fork),
  };
  const oids = work.lfs.map(({ oid }) => oid);
  // First, so that no pointer is on the branch without its content.
  if (oids.length > 0) await uploadContents(mirror, oids, signal, fork !== undefined);
  const attributes = { "offstage.repository.id": repository.id };
  return traces.span("push", { kind: "client", attributes }, () => pushBranch(mirror, request, signal));
}

async function recordPush(
  { session, emit }: Attempt,
  { database }: PushServices,
  work: ClonedWork,
  { sha, fork }: { readonly sha: string; readonly fork: RepositoryAddress | undefined },
): Promise<PushedWork> {
  const { repository } = work.clone;
  await saveRepository(database, session, repository.position, { headSha: sha, pushedSha: sha });
  await emit({ type: "branch.pushed", data: { repositoryId: repository.id, branch: session.branchName, sha } });
  if (sha !== work.headSha) {
    const text = `Others had committed to ${session.branchName} of ${repository.name} meanwhile: the branch has their commits and the session's work.`;
    await emit({ type: "notice", data: { level: "info", text } });
  }
  return { ...work, pushedSha: sha, fork };
}

/**
 * Whether to make a branch again that the session had pushed, that is gone, and to which nothing is to be added: not if its pull
 * request was merged or closed, or the forge has none. That pull request is then recorded.
 */
async function mayRecreate(
  attempt: Attempt,
  services: PushServices,
  { clone, recorded }: ClonedWork,
  fork: RepositoryAddress | undefined,
): Promise<boolean> {
  const { session, signal, emit } = attempt;
  const { repository, address, targetBranch: target } = clone;
  const head = session.branchName;
  const forge = services.forgeOf(address);
  const found = forge.opensPullRequests ? await forge.findPullRequest(address, head, target, signal, fork) : null;
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
