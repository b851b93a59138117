import type { Database } from "../../database/database.ts";
import { storable, storableJson } from "../../domain/fields/text.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { appendEvents } from "../sessions/events.ts";
import type { HarnessSession } from "./claims.ts";
import { underClaim, type Claim } from "./lease.ts";

// A worker's writes and reads while it works on a session.

/**
 * Appends events to a session under a claim.
 * @throws LeaseLostError
 */
export async function appendClaimEvents(database: Database, claim: Claim, events: readonly NewEvent[]): Promise<void> {
  await underClaim(database, claim, (transaction) => appendEvents(transaction, claim.sessionId, events));
  database.notify("offstage_event", claim.sessionId);
}

/** How many of a session's newest events are looked at for one that may be stored already. */
const newest = 50;

/** Whether one of a session's newest events is equal to this one. */
export async function hasEvent(database: Database, { sessionId }: Claim, { type, data }: NewEvent): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    `select from event join session on session.id = session_id
     where session_id = $1 and seq > last_event - ${newest} and type = $2 and data = $3::jsonb limit 1`,
    [sessionId, type, storableJson(data)],
  );
  return rowCount === 1;
}

/** A message that the agent must answer. */
export interface ClaimedMessage {
  readonly id: string;
  readonly position: number;
  readonly text: string;
  /** The message was given to the agent in an earlier attempt that did not finish the turn. */
  readonly interrupted: boolean;
}

/**
 * Reads the first message that is not done, without a change; null if all are done.
 */
export async function upcomingMessage(
  database: Database,
  { sessionId }: Claim,
): Promise<{ readonly interrupted: boolean; readonly mergesTarget: boolean } | null> {
  const { rows } = await database.pool.query<{ interrupted: boolean; mergesTarget: boolean }>(
    `select status = 'running' as interrupted, merges_target as "mergesTarget" from message
     where session_id = $1 and status <> 'done' order by position limit 1`,
    [sessionId],
  );
  return rows[0] ?? null;
}

/**
 * The first message that is not done, marked as running; null if all are done.
 * @throws LeaseLostError
 */
export function nextMessage(database: Database, claim: Claim): Promise<ClaimedMessage | null> {
  return underClaim(database, claim, async (transaction) => {
    const { rows } = await transaction.query<ClaimedMessage>(
      `select id, position, text, status = 'running' as interrupted from message
       where session_id = $1 and status <> 'done' order by position limit 1`,
      [claim.sessionId],
    );
    const [message] = rows;
    if (message === undefined) return null;
    await transaction.query("update message set status = 'running' where id = $1", [message.id]);
    return message;
  });
}

/**
 * Ends a turn. The agent's `answer` becomes the session's summary, and is stored with the message: each thread of a
 * forge gets the answer of its own turn.
 * @param isKept whether a checkpoint has all changes of the turn
 * @param isRepeated whether the message had been answered before, and the work was lost: then failures are still counted from
 *   before, or a session could repeat its turn for ever; false if omitted
 * @param hasChanged whether the turn changed any file or commit; unknown if null or omitted
 * @throws LeaseLostError
 */
export function completeMessage(
  database: Database,
  claim: Claim,
  messageId: string,
  {
    answer,
    isKept,
    isRepeated = false,
    hasChanged = null,
  }: {
    readonly answer: string;
    readonly isKept: boolean;
    readonly isRepeated?: boolean;
    readonly hasChanged?: boolean | null;
  },
): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query(
      "update message set status = 'done', kept = $2, answer = $3, changed = $4, pushed = null where id = $1",
      [messageId, isKept, storable(answer), hasChanged],
    );
    await transaction.query("update session set retry = case when $3 then retry end, summary = $2 where id = $1", [
      claim.sessionId,
      answer,
      isRepeated,
    ]);
  });
}

/**
 * Records that a checkpoint has all changes of a turn that has ended.
 * @throws LeaseLostError
 */
export function keepMessage(database: Database, claim: Claim, messageId: string): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update message set kept = true where id = $1", [messageId]);
  });
}

/**
 * Reopens answered messages whose changes were lost, because their worker died before it saved them.
 * @param lost "not kept": messages that no checkpoint includes; "all": every message that is not settled, if there is
 * no checkpoint
 * @returns how many messages
 * @throws LeaseLostError
 */
export function reopenMessages(database: Database, claim: Claim, lost: "not kept" | "all"): Promise<number> {
  return underClaim(database, claim, async (transaction) => {
    const { rowCount } = await transaction.query(
      `update message set status = 'running' from session
       where session.id = message.session_id and session_id = $1 and message.status = 'done'
         and position > settled_messages and (not kept or $2) and withdrawn_at is null`,
      [claim.sessionId, lost === "all"],
    );
    return rowCount ?? 0;
  });
}

/**
 * Saves the harness's own session, so that another attempt can resume the conversation, and a replay uses the same agent.
 * @throws LeaseLostError
 */
export function saveHarness(database: Database, claim: Claim, harness: HarnessSession): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update session set harness = $2 where id = $1", [claim.sessionId, storableJson(harness)]);
  });
}

/**
 * Records that this worker's disk now has the session's latest folders; copies on other workers are outdated.
 * @throws LeaseLostError
 */
export function saveWorkspaceWorker(database: Database, claim: Claim, worker: string): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update session set workspace_worker = $2 where id = $1", [claim.sessionId, worker]);
  });
}

/** Limit in characters, beyond what any model reads. */
const transcriptLimit = 500_000;

/** The messages of an ended turn. */
export interface SaidInTurn {
  readonly from: "user" | "agent";
  readonly text: string;
}

/**
 * The messages and answers of earlier turns, for a harness that can't resume: only the newest part if they are very
 * long; empty if the agent has not answered yet.
 */
export async function transcript(database: Database, { sessionId }: Claim): Promise<SaidInTurn[]> {
  const { rows } = await database.pool.query<{ text: string; answer: string | null }>(
    `with turn as (
       select position, text, answer,
         sum(length(text) + coalesce(length(answer), 0)) over (order by position desc) as newer_and_this
       from message where session_id = $1 and status = 'done' and withdrawn_at is null)
     select text, answer from turn where newer_and_this <= $2 order by position`,
    [sessionId, transcriptLimit],
  );
  const said = rows.flatMap(({ text, answer }): SaidInTurn[] => [
    { from: "user", text },
    ...(answer === null || answer === "" ? [] : [{ from: "agent", text: answer } as const]),
  ]);
  return said.some(({ from }) => from === "agent") ? said : [];
}
