import { idScopesOf } from "../../domain/answers/answer.ts";
import type { ConversationSubject } from "../../domain/conversations/conversation.ts";
import type { CommentPlace, Earlier } from "../../domain/conversations/facts.ts";
import type { Said } from "../../domain/conversations/happening.ts";
import { findMention } from "../../domain/conversations/mention.ts";
import { needsRights } from "../../domain/conversations/sayings.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import { isOwnComment } from "../../store/answers/answers.ts";
import type { ClaimedEvent } from "../../store/automations/claimed-events.ts";
import { lockConversation, type ConversationPlace } from "../../store/conversations/conversations.ts";
import { readFacts } from "../../store/conversations/facts.ts";
import type { RepositoryRecord } from "../../store/repositories/repositories.ts";
import { askForge } from "./ask-forge.ts";
import { findMacro } from "./macros.ts";
import { unasked, type Asked, type ConversationServices } from "./occasion.ts";

/**
 * Asks what has to be known before a comment is decided: whether it is our own, whether its author has write access,
 * and which automation it calls.
 * @throws UnavailableError if the forge does not answer
 */
export async function askFirst(
  services: ConversationServices,
  event: ClaimedEvent,
  place: ConversationPlace,
  repository: RepositoryRecord,
  said: Said,
): Promise<Omit<Asked, "commitUrl">> {
  const { database, limits } = services;
  const { organizationId, repositoryId, subject } = place;
  const { commentId, body } = said;
  const isOwn =
    commentId !== null &&
    (await isOwnComment(database.pool, {
      organizationId,
      repositoryId,
      commentId,
      body,
      idScopes: idScopesOf(subject.kind, said),
    }));
  const locked = await lockConversation(database.pool, place, false);
  const facts = await readFacts(database.pool, locked, { key: said.key, sha: null });
  if (!needsRights(said, { ...facts, isOwn }, limits)) return { ...unasked, isOwn };
  const mayWrite = await askRights(services, repository, said);
  const name = findMention(body, limits.mention)?.macro ?? null;
  const macro = name === null || mayWrite !== true ? null : await findMacro(services, event, repository, name);
  const where = mayWrite === true ? await askPlace(services, repository, subject, said) : null;
  const thread = mayWrite === true && name === null ? await askThread(services, repository, subject, said) : [];
  return { ...unasked, isOwn, mayWrite, macro, place: where, thread };
}

/**
 * The place of a comment on a pull request, for forges that don't deliver it. Without a place, the comment is taken up
 * all the same.
 */
async function askPlace(
  services: ConversationServices,
  repository: RepositoryRecord,
  { kind, number }: ConversationSubject,
  { commentId, threadId, path, line, hunk }: Said,
): Promise<CommentPlace | null> {
  if (kind === "issue" || commentId === null || hunk !== null) return null;
  const comment = { number, threadId, path, line };
  return askForge(services, repository, async (forge, address, signal) => {
    return (await forge.feedback?.readPlace?.(address, comment, signal)) ?? null;
  });
}

/** Earlier comments, which an author may refer to. Those of reviews are read when their review is taken up. */
async function askThread(
  services: ConversationServices,
  repository: RepositoryRecord,
  subject: ConversationSubject,
  { commentId, threadId, isOnLines }: Said,
): Promise<readonly Earlier[]> {
  if (commentId === null || isOnLines) return [];
  const comment = { subject, commentId, threadId, isOnLines };
  const read = await askForge(services, repository, async ({ feedback }, address, signal) => {
    return (await feedback?.readThread(address, comment, signal)) ?? null;
  });
  return read ?? [];
}

/**
 * A GitHub App is not a collaborator, and no other account can have its name, which need not end in `[bot]` (Copilot): an
 * operator who allows it by name has vouched for it.
 * @returns null if the forge does not say
 * @throws UnavailableError if the forge does not answer
 */
async function askRights(
  services: ConversationServices,
  repository: RepositoryRecord,
  { by }: Said,
): Promise<boolean | null> {
  if (by === null) return null;
  return askForge(services, repository, async (forge, address, signal) => {
    if (forge.kind === "github" && by.isBot) return true;
    return forge.feedback === null ? null : forge.feedback.mayWrite(address, by, signal);
  });
}

/** The page of a commit; null if it has none. */
export async function commitUrlOf(
  { forgeOf }: ConversationServices,
  { url, organizationId }: RepositoryRecord,
): Promise<(sha: string) => string | null> {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) return () => null;
  const { commitPage } = await forgeOf(address, organizationId);
  return (sha) => commitPage?.(address, sha) ?? null;
}
