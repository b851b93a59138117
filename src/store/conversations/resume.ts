import type { Queryable } from "../../database/database.ts";
import { resumed } from "../../domain/conversations/sayings.ts";
import { lockConversation, saveConversation } from "./conversations.ts";

/**
 * Does an action by which a person speaks to a session elsewhere than on the forge, and restarts the feedback loop at
 * the session's open pull requests. It locks in the order of decisions in a conversation: the conversations, the
 * session, and the rows written for the conversations.
 */
export async function resumeConversations(
  transaction: Queryable,
  organizationId: string,
  sessionId: string,
  speak: () => Promise<void>,
): Promise<void> {
  const { rows } = await transaction.query<{ repositoryId: string; number: number }>(
    `select repository_id as "repositoryId", number from pull_request
     where organization_id = $1 and session_id = $2 and state = 'open' order by repository_id, number`,
    [organizationId, sessionId],
  );
  const heard = [];
  for (const { repositoryId, number } of rows) {
    const subject = { kind: "pullRequest", number } as const;
    heard.push(await lockConversation(transaction, { organizationId, repositoryId, subject }, false));
  }
  await speak();
  for (const { id, state } of heard) {
    const next = resumed(state);
    // Without a row there was no event of it.
    if (id !== null && next !== state) await saveConversation(transaction, id, next, { startedSession: null });
  }
}
