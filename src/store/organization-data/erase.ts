import { setTimeout as pause } from "node:timers/promises";
import type { Database } from "../../database/database.ts";
import { ConflictError, InvalidInputError, NotFoundError } from "../../domain/errors/errors.ts";
import { forgetKeys } from "../people/principals.ts";
import { removeRows } from "../prune.ts";
import { recoverSessions } from "../queue/lease.ts";
import { deleteSession } from "../sessions/delete-session.ts";
import { connectionsChannel } from "../secrets/forge-connections.ts";
import { cancelSession } from "../sessions/sessions.ts";
import { one } from "../one-row.ts";

/** Channel on which workers learn that an organization is to be erased, or has been. */
export const erasureChannel = "offstage_erasure";

/** Rows that one statement deletes. */
const batchSize = 1_000;
/** A piece of a checkpoint can have 4 MiB. */
const piecesOfBatch = 50;
const sessionsOfBatch = 100;
/** PostgreSQL: a row still refers to the one that is to be deleted. */
const stillReferredTo = "23503";

/** Rows that are deleted before the sessions: deleting a session searches its organization's deliveries. */
const beforeSessions = [
  "notice",
  "notice_delivery",
  "conversation_item",
  "conversation",
  "answer",
  "webhook_delivery",
  "arrival",
  "received_key",
  "told_state",
  "idempotency",
  "audit_entry",
] as const;
/** Rows that sessions refer to, each after the rows that refer to it. */
const afterSessions = [
  "push_subscription",
  "notice_preference",
  "webhook",
  "pull_request",
  "job",
  "automation_state",
  "trigger",
  "automation_file",
  "automation_sync",
  "automation",
  "secret",
  "registry",
  "forge_connection",
  "forge_account",
  "repository",
  "model_spend",
  "insight_day",
  "insight_kept_day",
  "insight_mark",
  "invitation_mail",
  "login_link",
  "browser_session",
  "oauth_request",
  "oauth_grant",
  "share_link",
  "api_key",
  "user_account",
] as const;

/** Tables whose rows go with the organization; those of sessions go with the session. */
export const erasedTables: readonly string[] = [...beforeSessions, "session", ...afterSessions, "organization"];

/** An erasure that was asked for. */
export interface Erasure {
  readonly organizationId: string;
  readonly askedAt: string;
}

/**
 * Begins to erase an organization. From here on none of its people is signed in, none of its keys works, and none of
 * its work begins; `continueErasure` removes its data. Beginning twice is the same as once.
 * @param confirmedName must be the organization's name
 * @throws InvalidInputError if it is not
 * @throws NotFoundError
 */
export async function beginErasure(
  database: Database,
  organizationId: string,
  confirmedName: string,
): Promise<Erasure> {
  const erasure = await database.transaction(async (transaction) => {
    const { rows } = await transaction.query<{ name: string }>(
      "select name from organization where id = $1 for no key update",
      [organizationId],
    );
    const { name } = one(rows, "organization", organizationId);
    if (name !== confirmedName) {
      throw new InvalidInputError(`name: must be the organization's name, "${name}", to confirm its erasure`);
    }
    const begun = await transaction.query<{ asked_at: Date }>(
      `insert into erasure (organization_id) values ($1)
       on conflict (organization_id) do update set finished_at = null returning asked_at`,
      [organizationId],
    );
    // Another organization may have the name now: the next start of a server makes a new one of the name `default`.
    await transaction.query("update organization set name = 'erased ' || id where id = $1", [organizationId]);
    // The next start may give the new organization the key that the operator chose for this one: it must be free.
    await transaction.query(
      `update api_key set revoked_at = coalesce(revoked_at, now()), hash = sha256(convert_to('erased ' || id, 'UTF8'))
       where organization_id = $1`,
      [organizationId],
    );
    await transaction.query("delete from browser_session where organization_id = $1", [organizationId]);
    await transaction.query("delete from login_link where organization_id = $1", [organizationId]);
    // No program exchanges a code any more that a person has allowed.
    await transaction.query("delete from oauth_request where organization_id = $1", [organizationId]);
    await transaction.query("delete from oauth_grant where organization_id = $1", [organizationId]);
    await transaction.query("delete from share_link where organization_id = $1", [organizationId]);
    await transaction.query(
      "update user_account set disabled_at = coalesce(disabled_at, now()) where organization_id = $1",
      [organizationId],
    );
    // No delivery of a forge starts anything any more.
    await transaction.query(
      `update forge_connection set deleted_at = coalesce(deleted_at, now()), sealed = null, master_key = null
       where organization_id = $1`,
      [organizationId],
    );
    await transaction.query(
      "update trigger set deleted_at = coalesce(deleted_at, now()), sealed = null, master_key = null where organization_id = $1",
      [organizationId],
    );
    await transaction.query("update automation_sync set enabled = false where organization_id = $1", [organizationId]);
    // No notice is sent of what is removed.
    await transaction.query("update webhook set enabled = false where organization_id = $1", [organizationId]);
    return { organizationId, askedAt: (begun.rows[0]?.asked_at ?? new Date()).toISOString() };
  });
  forgetKeys(database);
  database.notifyAtOnce(connectionsChannel, organizationId);
  database.notify(erasureChannel, organizationId);
  return erasure;
}

/** Ids of the organizations that are being erased. */
export async function unfinishedErasures(database: Database): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    "select organization_id as id from erasure where finished_at is null order by asked_at",
  );
  return rows.map(({ id }) => id);
}

/** When an erasure was last finished, as PostgreSQL writes the time; null: none was. */
export async function lastErasure(database: Database): Promise<string | null> {
  const { rows } = await database.pool.query<{ at: string | null }>(
    "select max(finished_at at time zone 'utc')::text as at from erasure",
  );
  return rows[0]?.at ?? null;
}

/**
 * Removes what an organization has, in small transactions that lock nothing but its own rows: first what runs is cancelled, then
 * what has ended goes. It may be killed anywhere, several processes may do it at once, and the next call continues.
 * @returns whether the organization is gone; if not, call it again in a while: sessions are still being cancelled
 */
export async function continueErasure(
  database: Database,
  organizationId: string,
  signal: AbortSignal,
): Promise<boolean> {
  await cancelAll(database, organizationId, signal);
  for (const table of beforeSessions) await removeOwn(database, table, organizationId, signal);
  await removeSessions(database, organizationId, signal);
  const left = await database.pool.query("select from session where organization_id = $1 limit 1", [organizationId]);
  if (signal.aborted || left.rowCount !== 0) return false;
  for (const table of afterSessions) await removeOwn(database, table, organizationId, signal);
  return !signal.aborted && (await finish(database, organizationId));
}

/** Pause, in ms, while sessions are being cancelled. */
const againAfterMs = 500;

/**
 * Continues an erasure until the organization is gone.
 * @returns false if the signal ended it before: the next worker continues
 */
export async function finishErasure(database: Database, organizationId: string, signal: AbortSignal): Promise<boolean> {
  while (!(await continueErasure(database, organizationId, signal))) {
    // Ended early by the signal, which is checked next.
    await pause(againAfterMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return false;
  }
  return true;
}

function removeOwn(
  database: Database,
  table: (typeof beforeSessions | typeof afterSessions)[number],
  organizationId: string,
  signal: AbortSignal,
): Promise<number> {
  return removeRows(database, table, { condition: "organization_id = $1", values: [organizationId] }, signal).catch(
    (error: unknown) => {
      // Something came in meanwhile that refers to it: the next call removes that first.
      if (isReferredTo(error)) return 0;
      throw error;
    },
  );
}

const isReferredTo = (error: unknown): boolean => (error as { code?: string }).code === stillReferredTo;

/** Cancels what is queued, waits or runs. A session whose worker died is taken from it first. */
async function cancelAll(database: Database, organizationId: string, signal: AbortSignal): Promise<void> {
  await recoverSessions(database, {});
  await database.pool.query("delete from job where organization_id = $1 and status = 'pending'", [organizationId]);
  const { rows } = await database.pool.query<{ id: string }>(
    `select id from session where organization_id = $1 and status in ('queued', 'running', 'waiting')
       and not cancel_requested`,
    [organizationId],
  );
  for (const { id } of rows) {
    if (signal.aborted) return;
    await cancelSession(database, organizationId, id).catch(unlessGone);
  }
}

/** Another process was quicker, or the session ended by itself. */
function unlessGone(error: unknown): void {
  if (!(error instanceof ConflictError) && !(error instanceof NotFoundError)) throw error;
}

async function removeSessions(database: Database, organizationId: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const { rows } = await database.pool.query<{ id: string }>(
      `select id from session where organization_id = $1 and status in ('draft', 'completed', 'failed', 'cancelled')
       order by created_at desc, id desc limit ${sessionsOfBatch}`,
      [organizationId],
    );
    let removed = 0;
    for (const { id } of rows) {
      if (signal.aborted) return;
      await removeWhatIsLarge(database, id, signal);
      await deleteSession(database, organizationId, id).then(() => (removed += 1), unlessGone);
    }
    if (removed === 0) return;
  }
}

/** Removes a session's events and checkpoint, before the rest of it goes in one transaction. */
async function removeWhatIsLarge(database: Database, sessionId: string, signal: AbortSignal): Promise<void> {
  const steps = [
    `delete from event where session_id = $1
       and seq in (select seq from event where session_id = $1 order by seq limit ${batchSize})`,
    // Unreferenced objects of an erased organization are removed without the usual delay.
    `with gone as (
       delete from checkpoint_piece where session_id = $1 and (id, position) in (
         select id, position from checkpoint_piece where session_id = $1 limit ${piecesOfBatch}) returning object_key),
     unused as (
       update stored_object set used_at = now() - interval '1 day'
       where key in (select object_key from gone where object_key is not null))
     select from gone`,
  ];
  for (const step of steps) {
    while (!signal.aborted) {
      const { rowCount } = await database.pool.query(step, [sessionId]);
      if (rowCount === 0) break;
    }
  }
}

/** Removes the organization itself, and notes that it was erased, without anything of it but its id. */
async function finish(database: Database, organizationId: string): Promise<boolean> {
  try {
    await database.transaction(async (transaction) => {
      const gone = await transaction.query("delete from organization where id = $1", [organizationId]);
      if (gone.rowCount === 0) return;
      await transaction.query("update erasure set finished_at = now() where organization_id = $1", [organizationId]);
      await transaction.query(
        `insert into audit_entry (id, organization_id, actor, action, target, status)
         values (gen_random_uuid(), null, 'command', 'organization erased', $1, 200)`,
        [organizationId],
      );
    });
  } catch (error) {
    if (isReferredTo(error)) return false;
    throw error;
  }
  database.notify(erasureChannel, organizationId);
  return true;
}
