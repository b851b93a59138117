import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { saveRepository } from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { Collision } from "../git/join.ts";
import { uploadContents } from "../git/lfs.ts";
import type { ClonedWork } from "./export-work.ts";
import { pushBranch, type BranchServices, type PushEnd } from "./push-branch.ts";
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
export type PushServices = BranchServices & Pick<AttemptServices, "traces" | "forks">;

/**
 * Pushes each changed repository's work branch from the mirror, joined with what others committed to it. A branch that is at the
 * commit already is not pushed again; one that was deleted when its pull request ended is not made again.
 * @throws SessionError see `pushBranch`; LeaseLostError
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
  target: PushTarget,
): Promise<PushEnd> {
  const oids = work.lfs.map(({ oid }) => oid);
  // First, so that no pointer is on the branch without its content.
  if (oids.length > 0) await uploadContents(target.mirror, oids, attempt.signal, target.fork !== undefined);
  const attributes = { "offstage.repository.id": work.clone.repository.id };
  const span = { kind: "client", attributes } as const;
  return services.traces.span("push", span, () => pushBranch(attempt, services, work, target));
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
