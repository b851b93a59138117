import type { Database } from "../../database/database.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge } from "../../forges/forge.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { joinServices, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import {
  claimOpenPullRequests,
  closePullRequest,
  saveMergeable,
  type OpenPullRequest,
} from "../../store/repositories/pull-requests.ts";

const batch = 20;
const pollEveryMs = 60_000;

/** What following pull requests needs. */
export interface PullRequestPollOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly forgeOf: (address: RepositoryAddress, organizationId: string) => Forge | Promise<Forge>;
  /** Time between two requests about one pull request, in minutes; 0: no forge is asked. */
  readonly minutes: number;
}

/**
 * Regularly asks the forges for the state of open pull requests, and records those that were merged or closed, and whether the
 * others can be merged.
 */
export function createPullRequestPolling(options: PullRequestPollOptions): Service {
  if (options.minutes === 0) return joinServices([]);
  return createPeriodic({
    round: async (stopping) => void (await pollPullRequests(options, stopping)),
    everyMs: pollEveryMs,
    firstAfterMs: pollEveryMs,
    onFailure: (error) => options.logger.warn({ err: error }, "could not poll pull requests; will retry"),
  });
}

/**
 * One round over the pull requests that are due, at most 20. A forge's error is logged.
 * @param stopping ends the round, and its request under way; pull requests that it leaves out are due in the next interval
 * @returns how many were due
 */
export async function pollPullRequests(options: PullRequestPollOptions, stopping: AbortSignal): Promise<number> {
  const { database, logger, minutes } = options;
  const due = await claimOpenPullRequests(database, { minutes, limit: batch });
  for (const pullRequest of due) {
    if (stopping.aborted) break;
    try {
      await pollPullRequest(options, pullRequest, stopping);
    } catch (error) {
      if (stopping.aborted) break;
      logger.info({ err: error, sessionId: pullRequest.sessionId }, "could not read a pull request's state");
    }
  }
  return due.length;
}

async function pollPullRequest(
  { database, forgeOf }: PullRequestPollOptions,
  pullRequest: OpenPullRequest,
  stopping: AbortSignal,
): Promise<void> {
  const address = parseRepositoryUrl(pullRequest.repositoryUrl);
  if (isAddressProblem(address)) return;
  const forge = await forgeOf(address, pullRequest.organizationId);
  if (!forge.opensPullRequests) return;
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(pollEveryMs)]);
  const { state, mergeable } = await forge.readPullRequest(address, pullRequest.number, signal);
  if (state === "open") await saveMergeable(database, pullRequest, mergeable);
  else await closePullRequest(database, pullRequest, state);
}
