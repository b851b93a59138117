import type { Queryable } from "../../database/database.ts";
import { longestState, mostKeys, type StateEntry, type UpdateState } from "../../domain/automations/state.ts";
import { ConflictError, InvalidInputError, NotFoundError } from "../../domain/errors/errors.ts";
import { bytesWrittenOut } from "../../domain/fields/written-numbers.ts";
import { isoTime } from "../cursor.ts";

/** An automation, and the organization that it must be of. */
export interface StateOwner {
  readonly organizationId: string;
  readonly automationId: string;
}

/** Reads an automation's state, ordered by key; empty if there is none. */
export async function readState(queryable: Queryable, owner: StateOwner): Promise<StateEntry[]> {
  const { rows } = await queryable.query<StateEntry>(
    `select key, value, version::float8 as version, session_id as "sessionId", ${isoTime("updated_at")} as "updatedAt"
     from automation_state where automation_id = $1 and organization_id = $2 order by key collate "C"`,
    [owner.automationId, owner.organizationId],
  );
  return rows;
}

/**
 * Changes an automation's state: all of the changes or none. Writers of one automation come one after the other.
 * @param writer the session whose agent changes it; null: a caller of the API
 * @returns the state after it
 * @throws NotFoundError if the automation is gone
 * @throws ConflictError if a key has another version than `versions` says
 * @throws InvalidInputError if the state would have too many keys or be too large
 */
export async function changeState(
  transaction: Queryable,
  owner: StateOwner,
  { set, remove, versions }: UpdateState,
  writer: string | null,
): Promise<StateEntry[]> {
  const { organizationId, automationId } = owner;
  // "no key": jobs refer to this row.
  const locked = await transaction.query(
    "select from automation where id = $1 and organization_id = $2 and deleted_at is null for no key update",
    [automationId, organizationId],
  );
  if (locked.rowCount !== 1) throw new NotFoundError(`automation ${automationId} was not found`);
  const before = new Map((await readState(transaction, owner)).map((entry) => [entry.key, entry]));
  for (const [key, expected] of Object.entries(versions)) {
    const found = before.get(key)?.version ?? 0;
    if (found === expected) continue;
    const now = found === 0 ? "does not exist" : `has version ${found}`;
    throw new ConflictError(`state: ${key} ${now}, not ${expected}; read the state again, and change what it says now`);
  }
  await transaction.query("delete from automation_state where automation_id = $1 and key = any($2)", [
    automationId,
    remove,
  ]);
  await transaction.query(
    `insert into automation_state (automation_id, organization_id, key, value, version, session_id)
     select $1, $2, key, value, nextval('automation_state_version'), $4 from jsonb_each($3::jsonb)
     on conflict (automation_id, key) do update set value = excluded.value, version = excluded.version,
       session_id = excluded.session_id, updated_at = clock_timestamp()`,
    [automationId, organizationId, JSON.stringify(set), writer],
  );
  const after = await readState(transaction, owner);
  if (after.length > mostKeys) throw new InvalidInputError(`state: must have at most ${mostKeys} keys`);
  const bytes = after.reduce((sum, { key, value }) => sum + Buffer.byteLength(key) + bytesWrittenOut(value), 0);
  if (bytes > longestState)
    throw new InvalidInputError(`state: must be at most ${longestState / 1024} KiB together; remove what is old`);
  return after;
}
