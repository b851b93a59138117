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
 * What a delivery says of the end of a session's pull request counts at once, and not when it is next asked for. Deliveries come late and
 * in any order: whether it is closed or open again, its forge has to say. A merge is final.
 * @param postponed how often the event was put off
 * @returns what happened in truth
 * @throws UnavailableError if the forge does not answer, or does not know yet of the merge that it told of: the event is to be decided again
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
  const told = happening.type === "ended" ? happening.state : "open";
  const ask = () =>
    askForge(services, repository, (forge, address, signal) => forge.readPullRequest(address, number, signal));
  const read = told === "merged" ? null : await ask();
  const state = read?.state ?? told;
  for (const pullRequest of pullRequests) {
    await (state === "open"
      ? reopenPullRequest(database, pullRequest)
      : closePullRequest(database, pullRequest, state));
    if (state !== told) await readAgainSoon(database, pullRequest);
  }
  // GitLab says it of merge commits alone: without, nobody would know whose work is told of as pushed to the target, or checked there.
  if (state === "merged" && (happening.type !== "ended" || happening.mergeSha === undefined)) {
    const merged = read ?? (await ask());
    if (merged?.mergeSha !== undefined)
      await noteMerge(database, { organizationId, repositoryId }, number, merged.mergeSha);
    // Without the commit, what is told of it would begin a new chain of runs.
    else if (merged !== null && merged.state !== "merged" && postponed < mostPostponed)
      throw new UnansweredError("the forge told of a merge of which its API does not know yet");
  }
  return state === "open" ? { type: "reopened" } : { type: "ended", state };
}
