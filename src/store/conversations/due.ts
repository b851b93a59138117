import type { Queryable } from "../../database/database.ts";

/**
 * When a run is polled. The end of a session is announced (move_session); the end of a job without one, and the
 * deletion of a session, are not.
 */
export const lookedAtAgain = (id: string): string => `now() + case
  when exists (select from job where job.id = ${id} and job.session_id is null) then interval '5 seconds'
  else interval '10 minutes' end`;

/** A conversation that is to be looked after. */
export interface DueConversation {
  readonly id: string;
  readonly organizationId: string;
  /** Of its forge, as the repository's address has it. */
  readonly host: string;
}

/** What is left out of what is due. */
export interface DueElsewhere {
  /** Ids of conversations. */
  readonly without: readonly string[];
  /** Ids of organizations, and what `laneOf` gives: a host as one organization's conversations reach it. */
  readonly busy: readonly string[];
}

/** A host as one organization's conversations reach it. */
export const laneOf = ({ organizationId, host }: Omit<DueConversation, "id">): string => `${organizationId} ${host}`;

/** Conversations in which something is due, or a run may have ended that is not answered, the longest waiting first. */
export async function dueConversations(
  queryable: Queryable,
  limit: number,
  { without, busy }: DueElsewhere = { without: [], busy: [] },
): Promise<DueConversation[]> {
  const host = "split_part(repository.address_key, '/', 1)";
  const isFree = `conversation.id <> all($2::uuid[]) and conversation.organization_id::text <> all($3::text[])
    and conversation.organization_id::text || ' ' || ${host} <> all($3::text[])`;
  const { rows } = await queryable.query<DueConversation>(
    `select id, organization_id as "organizationId", host from (
       (select conversation.id, conversation.organization_id, ${host} as host, conversation.due_at from conversation
          join repository on repository.id = conversation.repository_id
          where conversation.due_at <= now() and ${isFree} order by conversation.due_at limit $1)
       union all
       (select conversation.id, conversation.organization_id, ${host} as host, run.due_at from conversation_run run
          join conversation on conversation.id = run.conversation_id
          join repository on repository.id = conversation.repository_id
          where run.due_at <= now() and ${isFree} order by run.due_at limit $1)) as due
     group by id, organization_id, host order by min(due_at) limit $1`,
    [limit, without, busy],
  );
  return rows;
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
