import type { Database } from "../../database/database.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repository.ts";
import type { Forge } from "../../forges/forge.ts";
import type { Logger } from "../../observability.ts";
import {
  claimOpenPullRequests,
  closePullRequest,
  type OpenPullRequest,
} from "../../store/repositories/pull-requests.ts";

const batch = 20;
const lookEveryMs = 60_000;

/** What following pull requests needs. */
export interface FollowOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly forgeOf: (address: RepositoryAddress) => Forge;
  /** Time between two requests about one pull request, in minutes; 0: no forge is asked. */
  readonly minutes: number;
}

/**
 * Regularly asks the forges for the state of open pull requests, and records those that were merged or closed.
 * @returns stops the timer; a round under way goes on
 */
export function followPullRequests(options: FollowOptions): () => void {
  if (options.minutes === 0) return () => undefined;
  const { logger } = options;
  const timer = setInterval(() => {
    lookAtPullRequests(options).catch((error: unknown) =>
      logger.warn({ err: error }, "could not look at pull requests; will look again"),
    );
  }, lookEveryMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** One round over the pull requests that are due, at most 20. A forge's error is logged. @returns how many were due */
export async function lookAtPullRequests(options: FollowOptions): Promise<number> {
  const { database, logger, minutes } = options;
  const due = await claimOpenPullRequests(database, { minutes, limit: batch });
  for (const pullRequest of due) {
    try {
      await lookAt(options, pullRequest);
    } catch (error) {
      logger.info({ err: error, sessionId: pullRequest.sessionId }, "could not ask how a pull request stands");
    }
  }
  return due.length;
}

async function lookAt({ database, forgeOf }: FollowOptions, pullRequest: OpenPullRequest): Promise<void> {
  const address = parseRepositoryUrl(pullRequest.repositoryUrl);
  if (isAddressProblem(address)) return;
  const forge = forgeOf(address);
  if (!forge.opensPullRequests) return;
  const { state } = await forge.readPullRequest(address, pullRequest.number, AbortSignal.timeout(lookEveryMs));
  if (state !== "open") await closePullRequest(database, pullRequest, state);
}
