import type { RefusedRepository } from "../../../domain/errors/refused-repositories.ts";
import type { RepositoryAddress } from "../../../domain/repositories/repository.ts";
import { saveRepository } from "../../../store/queue/recorded-work.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { isWithin, type Collision } from "../../git/join.ts";
import { uploadContents } from "../../git/lfs/transfers.ts";
import type { ClonedWork } from "../commit/export-work.ts";
import { pushBranch, type BranchServices, type PushEnd } from "./push-branch.ts";
import { requireWorkflowRight } from "./require-writable.ts";
import { createRefusalNotices, type RefusalNotices } from "./refusal-notices.ts";
import { refusalOf, undelivered } from "../commit/undelivered.ts";
import { whereToPush, type PushDestination } from "./where-to-push.ts";

/** Work whose branch is on the remote. */
export interface PushedWork extends ClonedWork {
  /** The commit that the branch is at: the exported one, or what joins it with the commits of others. */
  readonly pushedSha: string;
  /** The fork that has the branch; undefined: the repository itself. */
  readonly fork: RepositoryAddress | undefined;
}

/** Work that git can't join with others' commits to its branch: nothing of it was pushed. */
export interface CollidedWork {
  readonly work: ClonedWork;
  readonly collision: Collision;
}

/** Services of the worker for pushing. */
export type PushServices = BranchServices & Pick<AttemptServices, "traces" | "forks">;

/** How the pushes of a session's repositories ended. */
export interface Pushes {
  readonly pushed: readonly PushedWork[];
  readonly collided: readonly CollidedWork[];
  /** The refused repositories, which hold back no other. */
  readonly refused: readonly RefusedRepository[];
}

/** How one of them ended; none of these: its branch is not made again. */
type PushOf = Partial<{
  readonly pushed: PushedWork;
  readonly collided: CollidedWork;
  readonly refused: RefusedRepository;
}>;

/**
 * Pushes each changed repository's work branch from the mirror, joined with others' commits to it. A branch that is at
 * the commit already is not pushed again; one that was deleted when its pull request ended is not made again. A refused
 * push does not hold back the others, unless the session opens its pull requests together.
 * @param held.refused what was refused before
 * @param held.isMore whether the agent has something to resolve in further repositories
 * @param held.notices reports refusals
 * @throws SessionError if nothing could be pushed, and there is no more, or something was refused of what belongs together; see
 *   `pushBranch` and `requireWorkflowRight`; LeaseLostError
 */
export async function push(
  attempt: Attempt,
  services: PushServices,
  changes: readonly ClonedWork[],
  held: {
    readonly refused?: readonly RefusedRepository[];
    readonly isMore?: boolean;
    readonly notices?: Pick<RefusalNotices, "notTaken">;
  } = {},
): Promise<Pushes> {
  const { pullRequestsTogether } = attempt.session;
  const { refused: before = [], isMore = false, notices = createRefusalNotices(attempt) } = held;
  const ends: PushOf[] = before.map((refused) => ({ refused }));
  // Before anything is pushed, if all of it is held together.
  if (pullRequestsTogether) {
    for (const work of changes)
      ends.push(await orRefused(attempt, work, () => requireWorkflowRight(attempt, services, work)));
  }
  for (const work of changes) {
    if (pullRequestsTogether && ends.some(({ refused }) => refused !== undefined)) break;
    const end = orRefused(attempt, work, async () => {
      if (!pullRequestsTogether) await requireWorkflowRight(attempt, services, work);
      return pushInto(attempt, services, work);
    });
    ends.push(await end);
  }
  const pushes = {
    pushed: ends.flatMap((end) => end.pushed ?? []),
    collided: ends.flatMap((end) => end.collided ?? []),
    refused: ends.flatMap((end) => end.refused ?? []),
  };
  const { pushed, collided, refused } = pushes;
  if (refused.length === 0) return pushes;
  const names = pushed.map(({ clone }) => clone.repository.name);
  if (pullRequestsTogether || (pushed.length + collided.length === 0 && !isMore))
    throw undelivered(attempt, refused, { pushed: names, delivered: [] });
  await notices.notTaken(refused.slice(before.length));
  return pushes;
}

/** The result of `act` for a repository, or its refusal. @throws any other error */
async function orRefused(
  attempt: Pick<Attempt, "signal">,
  { clone }: ClonedWork,
  act: () => Promise<PushOf | void>,
): Promise<PushOf> {
  try {
    return (await act()) ?? {};
  } catch (error) {
    return { refused: refusalOf(error, clone, attempt) };
  }
}

async function pushInto(attempt: Attempt, services: PushServices, work: ClonedWork): Promise<PushOf> {
  const target = await whereToPush(attempt, services, work.clone);
  const end = await pushWork(attempt, services, work, target);
  switch (end.kind) {
    case "collided":
      return { collided: { work, collision: end } };
    case "pushed":
      return { pushed: await recordPush(attempt, services, work, { sha: end.sha, target }) };
    default:
      return {};
  }
}

async function pushWork(
  attempt: Attempt,
  services: PushServices,
  work: ClonedWork,
  target: PushDestination,
): Promise<PushEnd> {
  const oids = work.lfs.map(({ oid }) => oid);
  // First, so that no pointer is on the branch without its content.
  if (oids.length > 0) await uploadContents(target.mirror, oids, attempt.signal, target.fork !== undefined);
  const attributes = { "offstage.repository.id": work.clone.repository.id };
  const span = { kind: "client", attributes } as const;
  return services.traces.span("push", span, () => pushBranch(attempt, services, work, target));
}

async function recordPush(
  { session, emit, signal }: Attempt,
  { database }: PushServices,
  work: ClonedWork,
  { sha, target: { mirror, fork } }: { readonly sha: string; readonly target: PushDestination },
): Promise<PushedWork> {
  const { repository } = work.clone;
  const { pushedSha } = work.recorded;
  await saveRepository(database, session, repository.position, { headSha: sha, pushedSha: sha });
  if (pushedSha !== sha)
    await emit({ type: "branch.pushed", data: { repositoryId: repository.id, branch: session.branchName, sha } });
  if (sha !== work.headSha) {
    const options = { cwd: mirror.path, signal };
    const isRewritten = pushedSha !== null && !(await isWithin(pushedSha, sha, options));
    const text = isRewritten
      ? `The branch ${session.branchName} of ${repository.name} was rewritten meanwhile, and lacks commits that this session had pushed: it has only the work since then on top. What was taken out did not come back, and is in the session's diff until its next turn.`
      : `The branch ${session.branchName} of ${repository.name} had commits that this work is not on: it has them and the work now.`;
    await emit({ type: "notice", data: { level: "info", text } });
  }
  return { ...work, pushedSha: sha, fork };
}
