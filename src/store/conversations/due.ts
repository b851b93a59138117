import type { Queryable } from "../../database/database.ts";

/**
 * When a run is polled. The end of a session is announced (move_session); the end of a job without one, and the
 * deletion of a session, are not.
 */
export const lookedAtAgain = (id: string): string => `now() + case
  when exists (select from job where job.id = ${id} and job.session_id is null) then interval '5 seconds'
  else interval '10 minutes' end`;

/** Conversations in which something is due, or a run may have ended that is not answered, the longest waiting first. */
export async function dueConversations(queryable: Queryable, limit: number): Promise<string[]> {
  const { rows } = await queryable.query<{ id: string }>(
    `select id from (
       (select id, due_at from conversation where due_at <= now() order by due_at limit $1)
       union all
       (select conversation_id, due_at from conversation_run where due_at <= now() order by due_at limit $1)) as due
     group by id order by min(due_at) limit $1`,
    [limit],
  );
  return rows.map(({ id }) => id);
}

/**
 * Records a poll of a conversation's runs, before they are read: one that ends from here on is due again. Not in a
 * transaction with a decision, whose locks a session's move waits for.
 */
export async function lookAtRuns(queryable: Queryable, id: string): Promise<void> {
  await queryable.query(
    `update conversation_run set due_at = ${lookedAtAgain("conversation_run.id")} where conversation_id = $1 and due_at <= now()`,
    [id],
  );
}

/** Puts off a conversation that could not be read, so that it delays no other. */
export async function putOff(queryable: Queryable, id: string, pauseMs: number): Promise<void> {
  await queryable.query(
    "update conversation set due_at = now() + $2 * interval '1 millisecond' where id = $1 and due_at <= now()",
    [id, pauseMs],
  );
  await queryable.query(
    `update conversation_run set due_at = now() + $2 * interval '1 millisecond'
     where conversation_id = $1 and (due_at <= now() or due_at > now() + $2 * interval '1 millisecond')`,
    [id, pauseMs],
  );
}
