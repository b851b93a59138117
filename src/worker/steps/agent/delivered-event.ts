import type { ForgeEvent } from "../../../domain/automations/forge-event.ts";
import { readForgeEvent } from "../../../domain/automations/event-subject.ts";
import { isBranchName } from "../../../domain/fields/git-ref.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../../domain/repositories/repository.ts";
import { readFailedLogs } from "../../../forges/feedback/failed-logs.ts";
import { readDeliveredRepository } from "../../../store/automations/delivered-runs.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { addressOf } from "../../attempt/session-repositories.ts";
import type { Clone, SessionRepository } from "../../clones/clone.ts";
import { pullRequestIn, type FetchedPullRequest } from "../../clones/pull-request-refs.ts";
import type { WantedPullRequest } from "../../git/remote-repository.ts";

/** The event that started the session's run, if a forge delivered it and it is about one of the session's repositories. */
export interface DeliveredEvent {
  readonly event: ForgeEvent;
  readonly repository: SessionRepository;
}

/** The prompt's facts about such an event in addition to the event itself. */
export interface EventFacts {
  /** Null: the event is about none. Without commits: they could not be fetched. */
  readonly pullRequest: { readonly number: number; readonly fetched: FetchedPullRequest | null } | null;
  /** Ends of the logs of the check that failed; null: there are none, or the event is about none. */
  readonly logs: string | null;
}

/** Time in which a forge must give the logs, in ms. */
const logsMs = 30_000;

/** The event of the session's run, if a forge delivered it; null: none did, whatever the payload says. */
export async function readDeliveredEvent(
  { session }: Pick<Attempt, "session">,
  { database }: Pick<AttemptServices, "database">,
): Promise<DeliveredEvent | null> {
  if (session.automationId === null) return null;
  const event = readForgeEvent(session.payload);
  const delivered = event === null ? null : await readDeliveredRepository(database, session.sessionId);
  const repository = session.repositories.find(({ id }) => id === delivered?.repositoryId);
  return event === null || repository === undefined ? null : { event, repository };
}

/** The pull request that a session's clone of the repository is to have; undefined: none. */
export function wantedPullRequest(
  delivered: DeliveredEvent | null,
  { id }: SessionRepository,
  { forgeOf, repositoryKeyOf }: Pick<AttemptServices, "forgeOf" | "repositoryKeyOf">,
): WantedPullRequest | undefined {
  const pullRequest = delivered?.event.pullRequest;
  if (delivered === null || pullRequest === undefined || delivered.repository.id !== id) return undefined;
  const { number, head, target } = pullRequest;
  const address = addressOf(delivered.repository);
  const from = head?.repositoryUrl == null ? null : parseRepositoryUrl(head.repositoryUrl);
  const isOwn = from !== null && !isAddressProblem(from) && repositoryKeyOf(from) === repositoryKeyOf(address);
  const branch = isOwn && head !== null && isBranchName(head.branch) ? `refs/heads/${head.branch}` : null;
  const ref = forgeOf(address).pullRequestRef?.(number) ?? branch;
  return { number, ref, target: target !== null && isBranchName(target) ? target : null };
}

/** Reads what the prompt of the first turn says about the event. */
export async function readEventFacts(
  attempt: Attempt,
  services: Pick<AttemptServices, "forgeOf">,
  delivered: DeliveredEvent | null,
  clones: readonly Clone[],
): Promise<EventFacts | null> {
  // It has done its first turn, and knows.
  if (delivered === null || attempt.session.summary !== null) return null;
  const { event, repository } = delivered;
  const clone = clones.find((each) => each.repository.id === repository.id);
  const number = event.pullRequest?.number;
  const pullRequest =
    number === undefined || clone === undefined
      ? null
      : { number, fetched: await pullRequestIn(clone, attempt.session.sessionId, attempt.signal) };
  return { pullRequest, logs: await failedLogs(attempt, services, delivered) };
}

/** That they can't be read is no reason to leave the check red. */
async function failedLogs(
  { signal, mask, logger }: Attempt,
  { forgeOf }: Pick<AttemptServices, "forgeOf">,
  { event: { name, checks }, repository }: DeliveredEvent,
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
