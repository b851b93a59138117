import type { Database } from "../../database/database.ts";
import type { Happening } from "../../domain/conversations/happening.ts";
import type { ConversationPlace } from "../../store/conversations/conversations.ts";
import {
  beginReading,
  closePullRequest,
  readAgainSoon,
  reopenPullRequest,
} from "../../store/repositories/pull-requests.ts";
import { noteMerge } from "../../store/repositories/reported-state.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";
import { askForge, UnansweredError, type ForgeQuestions } from "./ask-forge.ts";

/** An event was put off so often when its forge is asked for the last time about a merge that it does not know yet: about a minute. */
const mostPostponed = 4;

/**
 * Records the end of a session's pull request as soon as a delivery reports it, without waiting for the next poll.
 * Deliveries come late and in any order, so whether it is closed or open again is asked of the forge. A merge is final.
 * @param postponed how often the event was put off
 * @returns what happened in truth
 * @throws UnavailableError if the forge does not answer, or its API does not know the delivered merge yet: the event
 *   is to be decided again
 */
export async function followState(
  services: ForgeQuestions & { readonly database: Database },
  { organizationId, repositoryId, subject: { number } }: ConversationPlace,
  repository: RepositoryRecord,
  happening: Happening,
  postponed: number,
): Promise<Happening> {
  if (happening.type !== "ended" && happening.type !== "reopened") return happening;
  const { database } = services;
  const pullRequests = await beginReading(database, { organizationId, repositoryId, number });
  if (pullRequests.length === 0) return happening;
  const delivered = happening.type === "ended" ? happening.state : "open";
  const ask = () =>
    askForge(services, repository, (forge, address, signal) => forge.readPullRequest(address, number, signal));
  const read = delivered === "merged" ? null : await ask();
  const state = read?.state ?? delivered;
  for (const pullRequest of pullRequests) {
    await (state === "open"
      ? reopenPullRequest(database, pullRequest)
      : closePullRequest(database, pullRequest, state));
    if (state !== delivered) await readAgainSoon(database, pullRequest);
  }
  // GitLab names it only for merge commits: without it, later pushes to the target and checks there could not be
  // matched to the session.
  if (state === "merged" && (happening.type !== "ended" || happening.mergeSha === undefined)) {
    const merged = read ?? (await ask());
    if (merged?.mergeSha !== undefined)
      await noteMerge(database, { organizationId, repositoryId }, number, merged.mergeSha);
    // Without the commit, events about it would begin a new chain of runs.
    else if (merged !== null && merged.state !== "merged" && postponed < mostPostponed)
      throw new UnansweredError("the forge delivered a merge that its API does not know yet");
  }
  return state === "open" ? { type: "reopened" } : { type: "ended", state };
}
