import type { Database } from "../../database/database.ts";
import { newId } from "../../domain/fields/new-id.ts";
import { removeRows } from "../prune.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Sealed, Vault } from "../secrets/vault.ts";

/**
 * The state of a request with an Idempotency-Key: it is new, was answered ("replay"), had another content under
 * this key ("mismatch"), or is still being handled.
 */
export type RequestState =
  /**
   * `createdId` is the id of what the request creates: it stays the same if the same request starts again before it
   * was answered.
   */
  | { readonly state: "new"; readonly createdId: string }
  | { readonly state: "replay"; readonly status: number; readonly body: string | SealedAnswer }
  | { readonly state: "mismatch" }
  | { readonly state: "inProgress" };

/** An answer that has a secret. It is bound to what its request created, so it can't be opened as another request's. */
export interface SealedAnswer extends Sealed {
  readonly createdId: string;
}

/** What the answer of a request is sealed for; `sealedTables` of the rotation has the same in SQL. */
const boundTo = (createdId: string): string => `answer ${createdId}`;

/**
 * An answer is kept for a day. A request without an answer, because its server died, may be sent again after a
 * minute.
 */
const keptFor = "24 hours";
const givenUpAfter = "60 seconds";

/**
 * Begins a request under its Idempotency-Key, or returns what is known under that key.
 * @param requestHash hash of the request's content
 */
export async function beginRequest(
  database: Database,
  organizationId: string,
  key: string,
  requestHash: Buffer,
): Promise<RequestState> {
  const begun = await database.pool.query<{ createdId: string }>(
    `insert into idempotency (organization_id, key, request_hash, created_id) values ($1, $2, $3, $4)
     on conflict (organization_id, key) do update
       set request_hash = excluded.request_hash, status = null, body = null, sealed = null, master_key = null, created_at = now(),
         created_id = case when idempotency.request_hash = excluded.request_hash
           and idempotency.created_at >= now() - interval '${keptFor}'
           then idempotency.created_id else excluded.created_id end
       where idempotency.created_at < now() - interval '${keptFor}'
         or (idempotency.status is null and idempotency.created_at < now() - interval '${givenUpAfter}')
     returning created_id as "createdId"`,
    [organizationId, key, requestHash, newId()],
  );
  if (begun.rows[0] !== undefined) return { state: "new", createdId: begun.rows[0].createdId };
  const { rows } = await database.pool.query<{
    requestHash: Buffer;
    status: number | null;
    body: string | null;
    sealed: Buffer | null;
    masterKey: string | null;
    createdId: string;
  }>(
    `select request_hash as "requestHash", status, body, sealed, master_key as "masterKey", created_id as "createdId"
     from idempotency where organization_id = $1 and key = $2`,
    [organizationId, key],
  );
  const [known] = rows;
  if (known === undefined) return { state: "inProgress" };
  if (!known.requestHash.equals(requestHash)) return { state: "mismatch" };
  const { status, body, sealed, masterKey, createdId } = known;
  if (status === null) return { state: "inProgress" };
  if (sealed !== null && masterKey !== null) return { state: "replay", status, body: { sealed, masterKey, createdId } };
  return body === null ? { state: "inProgress" } : { state: "replay", status, body };
}

/**
 * Opens an answer that has a secret.
 * @throws ConflictError if the master key is missing, or the row was changed
 */
export function openAnswer(vault: Vault, { createdId, ...sealed }: SealedAnswer): Promise<string> {
  return vault.open(boundTo(createdId), sealed);
}

/** Stores the answer of a request, which has a secret, to return it again: nobody can read it without the master key. */
export async function finishSealed(
  database: Database,
  vault: Vault,
  {
    organizationId,
    key,
    createdId,
  }: { readonly organizationId: string; readonly key: string; readonly createdId: string },
  status: number,
  body: string,
): Promise<void> {
  await sealing(database, async (transaction) => {
    const { sealed, masterKey } = await vault.seal(boundTo(createdId), body);
    await transaction.query(
      "update idempotency set status = $3, sealed = $4, master_key = $5 where organization_id = $1 and key = $2",
      [organizationId, key, status, sealed, masterKey],
    );
  });
}

/** Stores the answer of a request, to return it again. */
export async function finishRequest(
  database: Database,
  organizationId: string,
  key: string,
  status: number,
  body: string,
): Promise<void> {
  await database.pool.query("update idempotency set status = $3, body = $4 where organization_id = $1 and key = $2", [
    organizationId,
    key,
    status,
    body,
  ]);
}

/**
 * Records that the request failed, perhaps after it took effect. It may be sent again at once, with the same
 * `createdId`.
 */
export async function abandonRequest(database: Database, organizationId: string, key: string): Promise<void> {
  await database.pool.query(
    `update idempotency set created_at = created_at - interval '${givenUpAfter}'
     where organization_id = $1 and key = $2 and status is null`,
    [organizationId, key],
  );
}

/**
 * Deletes answers that are too old to be returned, until `signal` aborts.
 * @returns how many
 */
export function pruneRequests(database: Database, signal: AbortSignal): Promise<number> {
  const condition = `created_at < now() - interval '${keptFor}'`;
  return removeRows(database, "idempotency", { condition, values: [] }, signal);
}
