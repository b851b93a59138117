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

export interface FollowOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly forgeOf: (address: RepositoryAddress) => Forge;
  /** Between two questions about one pull request; 0: nobody is asked. */
  readonly minutes: number;
}

/** Asks the forges, now and then, what became of the pull requests that are open. @returns what stops it */
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

/** One round: those that are due. @returns how many were asked about */
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
