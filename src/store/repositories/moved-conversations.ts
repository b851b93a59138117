import type { Queryable } from "../../database/database.ts";
import { conversationSchema, dueAt } from "../../domain/conversations/conversation.ts";
import { mergeConversations } from "../../domain/conversations/merge.ts";
import { storableJson } from "../../domain/fields/text.ts";

interface Row {
  readonly id: string;
  readonly state: unknown;
}

/**
 * Moves conversations of deleted repository rows to the remaining one: else their items would be taken up again, their
 * bounds would restart, and their runs would never be answered.
 * @param pairs a query of deleted rows, each with the remaining one as `kept`
 */
export async function moveConversations(transaction: Queryable, pairs: string): Promise<void> {
  const { rows } = await transaction.query<Row & { readonly kept: string }>(
    `select conversation.id, conversation.state, pair.kept from (${pairs}) as pair
     join conversation on conversation.repository_id = pair.gone and conversation.organization_id = pair.organization_id
     order by conversation.id for no key update of conversation`,
  );
  for (const { kept, ...moved } of rows) {
    const { rows: found } = await transaction.query<Row>(
      `select same.id, same.state from conversation moved join conversation same on same.repository_id = $2
         and (same.organization_id, same.kind, same.number) = (moved.organization_id, moved.kind, moved.number)
       where moved.id = $1 for no key update of same`,
      [moved.id, kept],
    );
    const [same] = found;
    if (same !== undefined) await merge(transaction, moved, same);
    else await transaction.query("update conversation set repository_id = $2 where id = $1", [moved.id, kept]);
  }
}

/** The row that is left stays, since decisions may wait for its lock; what it says is that of both. */
async function merge(transaction: Queryable, moved: Row, same: Row): Promise<void> {
  const [one, other] = [moved, same].map(({ state }) => conversationSchema.parse(state));
  if (one === undefined || other === undefined) return;
  const merged = one.turns > other.turns ? mergeConversations(one, other) : mergeConversations(other, one);
  await transaction.query(
    `insert into conversation_item (organization_id, conversation_id, key, event_id, run_id, reason, created_at)
     select organization_id, $2, key, event_id, run_id, reason, created_at from conversation_item where conversation_id = $1
     on conflict (conversation_id, key) do nothing`,
    [moved.id, same.id],
  );
  await transaction.query("update conversation_run set conversation_id = $2 where conversation_id = $1", [
    moved.id,
    same.id,
  ]);
  await transaction.query(
    `update conversation set state = $3, due_at = to_timestamp($4::float8 / 1000),
       session_id = case when $5 then coalesce(moved.session_id, conversation.session_id)
         else coalesce(conversation.session_id, moved.session_id) end,
       spent_before_usd = least(conversation.spent_before_usd, moved.spent_before_usd), updated_at = now()
     from conversation moved where conversation.id = $2 and moved.id = $1`,
    [moved.id, same.id, storableJson(merged), dueAt(merged), one.turns > other.turns],
  );
  await transaction.query("delete from conversation where id = $1", [moved.id]);
}
