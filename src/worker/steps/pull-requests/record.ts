import type { ApprovalRules } from "../../../domain/repositories/approval.ts";
import type { ForgePullRequest } from "../../../forges/forge.ts";
import { savePullRequest } from "../../../store/queue/recorded-pull-requests.ts";
import { closePullRequest } from "../../../store/repositories/pull-requests.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import type { Clone } from "../../clones/clone.ts";

/** A pull request of a clone's work, as the forge has it. */
export interface FoundPullRequest extends Pick<ForgePullRequest, "number" | "url" | "state" | "target"> {
  readonly clone: Clone;
  /** The commit of the work branch that it was opened or found for. */
  readonly headSha: string;
  /** Whether it was opened by this attempt, for the event that shows it; omitted: there is no event. */
  readonly created?: boolean;
  /** Who may approve it; null or omitted: the forge does not say, or was not asked. */
  readonly approval?: ApprovalRules | null;
}

/**
 * Saves a pull request on the session, and its end if it ended meanwhile.
 * @returns the name of the person in whose name it was opened; null if none
 * @throws LeaseLostError
 */
export async function recordPullRequest(
  { session, emit }: Pick<Attempt, "session" | "emit">,
  { database }: Pick<AttemptServices, "database">,
  { clone, headSha, target, number, url, state, created, approval }: FoundPullRequest,
): Promise<{ readonly openedBy: string | null }> {
  const { sessionId, organizationId, branchName: head } = session;
  const { id: repositoryId } = clone.repository;
  const saved = { repositoryId, head, target, headSha, number, url, state, approval, created };
  const { id, openedBy } = await savePullRequest(database, session, saved);
  if (created !== undefined) await emit({ type: "pullRequest.opened", data: { repositoryId, number, url, created } });
  if (state !== "open")
    await closePullRequest(database, { id, organizationId, sessionId, repositoryId, number }, state);
  return { openedBy };
}
