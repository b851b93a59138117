import { SessionError } from "../../../domain/errors/errors.ts";
import { openTargets } from "../../../store/repositories/pull-requests.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { addressOf } from "../../attempt/session-repositories.ts";
import type { Clone } from "../../clones/clone.ts";
import { completeClones } from "../../clones/clones.ts";
import { askRemote } from "../../git/mirrors/ask-remote.ts";
import { remoteOptions } from "../../git/mirrors/mirror.ts";
import { knownPullRequest } from "./known.ts";

type Looking = Pick<Attempt, "session" | "signal" | "logger">;

/**
 * The target branches of the session's open pull requests as their forges have them now, by repository id; those that were recorded
 * last, if a forge can't be asked.
 */
export async function targetsOfPullRequests(
  attempt: Looking,
  services: Pick<AttemptServices, "database" | "forgeOf">,
): Promise<ReadonlyMap<string, string>> {
  const { sessionId, branchName, repositories } = attempt.session;
  for (const repository of repositories) {
    const address = addressOf(repository);
    try {
      await knownPullRequest(attempt, services, services.forgeOf(address), { repository, address }, null);
    } catch (error) {
      ignoreForNow(attempt, error, "could not ask for the target of a pull request");
    }
  }
  return openTargets(services.database, { sessionId, branchName, repositoryIds: repositories.map(({ id }) => id) });
}

/** Ignores a failure that later steps would meet too, and wait for if it passes. @throws anything else */
function ignoreForNow({ signal, logger }: Looking, error: unknown, what: string): void {
  signal.throwIfAborted();
  if (!(error instanceof SessionError)) throw error;
  logger.info({ err: error }, what);
}

/**
 * Gives clones that an earlier attempt left the target that their work is for now: that of the open pull request, or the default
 * branch in the place of one that is gone, such as after it was renamed. A target that the session's user named stays.
 */
export async function followTargets(
  attempt: Looking & Pick<Attempt, "emit">,
  services: Pick<AttemptServices, "folders">,
  clones: readonly Clone[],
): Promise<Clone[]> {
  const followed = await Promise.all(clones.map((clone) => followTarget(attempt, clone)));
  if (followed.some((clone, index) => clone !== clones[index]))
    await completeClones(services, attempt.session.sessionId, followed);
  return followed;
}

async function followTarget(attempt: Looking & Pick<Attempt, "emit">, clone: Clone): Promise<Clone> {
  const { repository, targetBranch: former } = clone;
  const target = await targetOf(attempt, clone);
  if (target === former) return clone;
  const text = `The work in ${repository.name} is for the branch ${target} from here on, in the place of ${former}: that is how its forge has it now.`;
  await attempt.emit({ type: "notice", data: { level: "info", text } });
  return { ...clone, targetBranch: target };
}

async function targetOf(attempt: Looking, clone: Clone): Promise<string> {
  const { targetBranch, remote } = clone;
  const ofPullRequest = remote.formerTarget ?? null;
  if (ofPullRequest !== null) return ofPullRequest;
  // In the first turn it was looked up a moment ago.
  if (remote.targetBranch !== null || attempt.session.summary === null) return targetBranch;
  try {
    return (await defaultInstead(clone, attempt.signal)) ?? targetBranch;
  } catch (error) {
    ignoreForNow(attempt, error, "could not ask whether a target branch is there");
    return targetBranch;
  }
}

/**
 * The remote's default branch, if the clone's target is gone; null if it is there, or there is no default branch.
 * @throws SessionError repository_*
 */
export async function defaultInstead({ mirror, targetBranch }: Clone, signal: AbortSignal): Promise<string | null> {
  const target = `refs/heads/${targetBranch}`;
  const { shaOf, defaultBranch } = await askRemote(mirror, ["HEAD", target], await remoteOptions(mirror, signal));
  return shaOf(target) === null ? defaultBranch : null;
}
