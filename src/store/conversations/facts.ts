import type { Queryable } from "../../database/database.ts";
import type { ConversationFacts } from "../../domain/conversations/facts.ts";
import type { LockedConversation } from "./conversations.ts";
import { keyOfItem } from "./items.ts";

/** The database's facts of a conversation in addition to its own state. */
export type KnownFacts = Pick<ConversationFacts, "isTaken" | "isOwnCommit" | "pullRequest" | "session" | "spentUsd">;

/** Reads what deciding has to know. @param about the key of what happened, and the commit that it is about */
export async function readFacts(
  transaction: Queryable,
  { id, organizationId, repositoryId, subject, sessionId }: LockedConversation,
  about: { readonly key: string | null; readonly sha: string | null },
): Promise<KnownFacts> {
  const { rows } = await transaction.query<{
    isTaken: boolean;
    isOwnCommit: boolean;
    pullRequest: KnownFacts["pullRequest"];
    session: KnownFacts["session"];
    spentUsd: number;
  }>(
    `select exists (select from conversation_item where conversation_id = $1 and key = $2) as "isTaken",
       -- Bitbucket Cloud names commits of pull requests by their beginning.
       exists (select from session_repository where session_id = $3 and starts_with(pushed_sha, $4))
         or exists (select from session_commit where session_id = $3 and starts_with(sha, $4)) as "isOwnCommit",
       (select state from pull_request where organization_id = $5 and repository_id = $6 and number = $7 and $8 = 'pullRequest'
         order by created_at desc limit 1) as "pullRequest",
       -- Who withdraws the message that it was queued for has not stopped it: it rests as before.
       (select jsonb_build_object('status', case when status = 'cancelled' and exists (
             select from message where session_id = $3 and withdrawn_at = session.finished_at) then 'completed' else status end,
           'pushedSha', (select pushed_sha from session_repository where session_id = $3 and repository_id = $6 limit 1),
           'pushingSha', (select pushing_sha from session_repository where session_id = $3 and repository_id = $6 limit 1),
           'begunShas', (select to_json(begun_pushes[coalesce(array_position(begun_pushes, pushed_sha), 0) + 1:])
             from session_repository where session_id = $3 and repository_id = $6 limit 1),
           'isOver', exists (select from pull_request where session_id = $3)
             and not exists (select from pull_request where session_id = $3 and state = 'open'))
         from session where id = $3) as session,
       greatest(0, (select coalesce(sum(spent_usd), 0) from session where organization_id = $5 and id in (
           select $3::uuid union select run_id from conversation_item where conversation_id = $1 and run_id is not null
           union select job.session_id from conversation_item item join job on job.id = item.run_id
             where item.conversation_id = $1 and item.run_id is not null))
         - coalesce((select spent_before_usd from conversation where id = $1), 0))::float8 as "spentUsd"`,
    [id, keyOfItem(about.key), sessionId, about.sha, organizationId, repositoryId, subject.number, subject.kind],
  );
  const [facts] = rows;
  if (facts === undefined) throw new Error("the facts of a conversation were not returned");
  return facts;
}
