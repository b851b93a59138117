import type { Queryable } from "../../database/database.ts";
import { resumed } from "../../domain/conversations/sayings.ts";
import { lockConversation, saveConversation } from "./conversations.ts";

/**
 * Does something by which a person speaks to a session elsewhere than on the forge, and lets the feedback loop go on by itself at the
 * session's open pull requests. What it locks comes in the order in which deciding in a conversation locks it: the conversations, the
 * session, and what is written of the conversations.
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
