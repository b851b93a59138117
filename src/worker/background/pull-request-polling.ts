import type { Database } from "../../database/database.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { Forge } from "../../forges/forge.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import { joinServices, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import {
  claimOpenPullRequests,
  closePullRequest,
  moveToTarget,
  reopenPullRequest,
  saveMergeable,
  type FollowedPullRequest,
} from "../../store/repositories/pull-requests.ts";
import { noteMerge } from "../../store/repositories/reported-state.ts";

const batch = 20;
const pollEveryMs = 60_000;
/** So many hosts are asked at once. */
const hostsAtOnce = 4;
/** A request is given up after this time, in ms. */
const longestMs = 10_000;

interface Asked {
  readonly pullRequest: FollowedPullRequest;
  readonly address: RepositoryAddress;
}

/** Dependencies for following pull requests. */
export interface PullRequestPollOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly forgeOf: (address: RepositoryAddress, organizationId: string) => Forge | Promise<Forge>;
  /** Time between two requests about one pull request, in minutes; 0: no forge is asked. */
  readonly minutes: number;
}

/**
 * Regularly asks the forges for the state of open pull requests, and of those that were closed lately, and records those that were
 * merged, closed or opened again, and whether the open ones can be merged.
 */
export function createPullRequestPolling(options: PullRequestPollOptions): Service {
  if (options.minutes === 0) return joinServices([]);
  return createPeriodic({
    pass: async (stopping) => void (await pollPullRequests(options, stopping)),
    everyMs: pollEveryMs,
    firstAfterMs: pollEveryMs,
    onFailure: (error) => options.logger.warn({ err: error }, "could not poll pull requests; will retry"),
  });
}

/**
 * One pass over the pull requests that are due, at most 20 open ones and 5 that were closed lately. A forge's error is
 * logged. A host that does not answer delays no other: a few hosts are asked at once, and one that took too long is
 * skipped for the rest of the pass.
 * @param stopping ends the pass, and its request under way; pull requests that it leaves out are due in the next interval
 * @returns how many were due
 */
export async function pollPullRequests(options: PullRequestPollOptions, stopping: AbortSignal): Promise<number> {
  const { database, logger, minutes } = options;
  const due = await claimOpenPullRequests(database, { minutes, limit: batch });
  const hosts = Map.groupBy(
    due.flatMap((pullRequest) => {
      const address = parseRepositoryUrl(pullRequest.repositoryUrl);
      return isAddressProblem(address) ? [] : [{ pullRequest, address }];
    }),
    ({ address: { host } }) => host,
  );
  const waiting = [...hosts.values()];
  async function pollHosts(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await pollHost(next);
  }
  async function pollHost(ofHost: readonly Asked[]): Promise<void> {
    for (const { pullRequest, address } of ofHost) {
      if (stopping.aborted) return;
      const limit = AbortSignal.timeout(longestMs);
      try {
        await pollPullRequest(options, pullRequest, { address, signal: AbortSignal.any([stopping, limit]) });
      } catch (error) {
        if (stopping.aborted) return;
        logger.info({ err: error, sessionId: pullRequest.sessionId }, "could not read a pull request's state");
        if (limit.aborted) return;
      }
    }
  }
  await Promise.all(Array.from({ length: hostsAtOnce }, pollHosts));
  return due.length;
}

async function pollPullRequest(
  { database, forgeOf }: PullRequestPollOptions,
  pullRequest: FollowedPullRequest,
  { address, signal }: { readonly address: RepositoryAddress; readonly signal: AbortSignal },
): Promise<void> {
  const forge = await forgeOf(address, pullRequest.organizationId);
  if (!forge.opensPullRequests) return;
  const { state, mergeable, target, mergeSha } = await forge.readPullRequest(address, pullRequest.number, signal);
  if (mergeSha !== undefined) await noteMerge(database, pullRequest, pullRequest.number, mergeSha);
  if (state !== "open") return closePullRequest(database, pullRequest, state);
  if (pullRequest.state === "closed") return reopenPullRequest(database, pullRequest);
  const isMoved = await moveToTarget(database, pullRequest, target);
  // The earlier answer was about another target.
  const asked = isMoved ? { ...pullRequest, mergeable: null, mergeableAsked: 0 } : pullRequest;
  await saveMergeable(database, asked, mergeable);
}
