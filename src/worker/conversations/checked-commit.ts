import type { Happening } from "../../domain/conversations/happening.ts";
import type { Queryable } from "../../database/database.ts";
import { lockConversation, type ConversationPlace } from "../../store/conversations/conversations.ts";
import { readFacts } from "../../store/conversations/facts.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";
import { askForge, type ForgeQuestions } from "./ask-forge.ts";

/**
 * Finds the commit that a check of a pull request is about: some forges check a merge of its branch with the target,
 * which they made for that and which was never pushed. It counts for the commit that was merged, if that is what the
 * session pushed last.
 * @returns the same happening if it is not so
 * @throws UnavailableError if the forge does not answer: the event is to be decided again
 */
export async function ofPushedCommit(
  services: ForgeQuestions & { readonly database: { readonly pool: Queryable } },
  place: ConversationPlace,
  repository: RepositoryRecord,
  happening: Happening,
): Promise<Happening> {
  if (happening.type !== "checks" || !happening.isOfPullRequest) return happening;
  const { pool } = services.database;
  const locked = await lockConversation(pool, place, false);
  const { session, pullRequest } = await readFacts(pool, locked, { key: null, sha: null });
  const pushed = [session?.pushedSha, session?.pushingSha].filter((sha) => sha != null);
  if (pullRequest !== "open" || pushed.length === 0 || pushed.includes(happening.sha)) return happening;
  const parents = await askForge(services, repository, (forge, address, signal) =>
    Promise.resolve(forge.feedback?.parentsOf?.(address, happening.sha, signal) ?? null),
  );
  const sha = pushed.find((each) => parents?.includes(each) === true);
  return sha === undefined ? happening : { ...happening, sha };
}
