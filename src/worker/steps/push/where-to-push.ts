import type { RepositoryAddress } from "../../../domain/repositories/repository.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import type { Clone } from "../../clones/clone.ts";
import type { Mirror } from "../../git/mirrors/mirror.ts";
import { worksFromFork } from "./require-writable.ts";

/** See `whereToPush`. */
export interface PushDestination {
  /** With the remote that it is pushed to. */
  readonly mirror: Mirror;
  /** Undefined: the repository itself. */
  readonly fork: RepositoryAddress | undefined;
}

/**
 * Where a repository's work is pushed: to the repository, or to a fork if the token may not push there and the operator allows
 * forks. The fork has the objects of the repository, so the push takes the work alone.
 * @returns the mirror to push from, with the remote that it is pushed to
 * @throws SessionError repository_access_denied, forge_unavailable if there is no fork
 */
export async function whereToPush(
  attempt: Pick<Attempt, "session" | "signal" | "emit">,
  services: Pick<AttemptServices, "forgeOf" | "forks">,
  clone: Clone,
): Promise<PushDestination> {
  const { repository } = clone;
  const target = await whereBranchIs(attempt, services, clone);
  if (target.fork === undefined) return target;
  const text = `The configured token may not push to ${repository.name}: the work is in the fork ${target.fork.path}.`;
  await attempt.emit({ type: "notice", data: { level: "info", text } });
  return target;
}

/**
 * As `whereToPush`, without a notice: the place of the work branch that an earlier attempt pushed.
 * @throws SessionError repository_access_denied, forge_unavailable
 */
export async function whereBranchIs(
  attempt: Pick<Attempt, "session" | "signal">,
  services: Pick<AttemptServices, "forgeOf" | "forks">,
  { address, mirror }: Clone,
): Promise<PushDestination> {
  if (!services.forks) return { mirror, fork: undefined };
  const { signal } = attempt;
  const forge = services.forgeOf(address);
  // Unlike at the beginning, the answer is needed: it decides where to push.
  const access = await forge.readAccess(address, attempt.session.branchName, signal, { isNeeded: true });
  if (!worksFromFork(services, access)) return { mirror, fork: undefined };
  const fork = await forge.fork(address, signal);
  const credentials = () => forge.credentials(fork, signal);
  return { mirror: { ...mirror, url: fork.cloneUrl, credentials }, fork };
}
