import type { ForgeEvent } from "../../../domain/automations/forge-event.ts";
import { readForgeEvent } from "../../../domain/automations/told-by-forge.ts";
import { isBranchName } from "../../../domain/fields/git-ref.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../../domain/repositories/repository.ts";
import { readFailedLogs } from "../../../forges/failed-logs.ts";
import { readToldRepository } from "../../../store/automations/told-runs.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { addressOf } from "../../attempt/session-repositories.ts";
import type { Clone, SessionRepository } from "../../clones/clone.ts";
import { pullRequestIn, type FetchedPullRequest } from "../../clones/pull-request-refs.ts";
import type { WantedPullRequest } from "../../git/remote-repository.ts";

/** An event that a forge told of one of the session's repositories, and which its run is about. */
export interface ToldEvent {
  readonly event: ForgeEvent;
  readonly repository: SessionRepository;
}

/** What the agent is told of such an event beside the event itself. */
export interface ToldFacts {
  /** Null: the event is about none. Without commits: they could not be fetched. */
  readonly pullRequest: { readonly number: number; readonly fetched: FetchedPullRequest | null } | null;
  /** Ends of the logs of the check that failed; null: there are none, or the event is about none. */
  readonly logs: string | null;
}

/** Time in which a forge must give the logs, in ms. */
const logsMs = 30_000;

/** What a forge told of the session's run; null: nothing did, whatever the payload says. */
export async function readToldEvent(
  { session }: Pick<Attempt, "session">,
  { database }: Pick<AttemptServices, "database">,
): Promise<ToldEvent | null> {
  if (session.automationId === null) return null;
  const event = readForgeEvent(session.payload);
  const told = event === null ? null : await readToldRepository(database, session.sessionId);
  const repository = session.repositories.find(({ id }) => id === told?.repositoryId);
  return event === null || repository === undefined ? null : { event, repository };
}

/** The pull request that a session's clone of the repository is to have; undefined: none. */
export function wantedPullRequest(
  told: ToldEvent | null,
  { id }: SessionRepository,
  { forgeOf, repositoryKeyOf }: Pick<AttemptServices, "forgeOf" | "repositoryKeyOf">,
): WantedPullRequest | undefined {
  const pullRequest = told?.event.pullRequest;
  if (told === null || pullRequest === undefined || told.repository.id !== id) return undefined;
  const { number, head, target } = pullRequest;
  const address = addressOf(told.repository);
  const from = head?.repositoryUrl == null ? null : parseRepositoryUrl(head.repositoryUrl);
  const isOwn = from !== null && !isAddressProblem(from) && repositoryKeyOf(from) === repositoryKeyOf(address);
  const branch = isOwn && head !== null && isBranchName(head.branch) ? `refs/heads/${head.branch}` : null;
  const ref = forgeOf(address).pullRequestRef?.(number) ?? branch;
  return { number, ref, target: target !== null && isBranchName(target) ? target : null };
}

/** What the agent is told before its first turn. */
export async function readToldFacts(
  attempt: Attempt,
  services: Pick<AttemptServices, "forgeOf">,
  told: ToldEvent | null,
  clones: readonly Clone[],
): Promise<ToldFacts | null> {
  // It has done its first turn, and knows.
  if (told === null || attempt.session.summary !== null) return null;
  const { event, repository } = told;
  const clone = clones.find((each) => each.repository.id === repository.id);
  const number = event.pullRequest?.number;
  const pullRequest =
    number === undefined || clone === undefined
      ? null
      : { number, fetched: await pullRequestIn(clone, attempt.session.sessionId, attempt.signal) };
  return { pullRequest, logs: await failedLogs(attempt, services, told) };
}

/** That they can't be read is no reason to leave the check red. */
async function failedLogs(
  { signal, mask, logger }: Attempt,
  { forgeOf }: Pick<AttemptServices, "forgeOf">,
  { event: { name, checks }, repository }: ToldEvent,
): Promise<string | null> {
  if (name !== "checks.failed" || checks === undefined) return null;
  const address = addressOf(repository);
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(logsMs)]);
    const text = await readFailedLogs(forgeOf(address).feedback, address, checks, bounded);
    return text === null ? null : mask.text(text);
  } catch (error) {
    signal.throwIfAborted();
    logger.info({ err: error, check: checks.id }, "could not read the log of a check");
    return null;
  }
}
