import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
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
  | { readonly state: "new"; readonly held: HeldRequest }
  | { readonly state: "replay"; readonly status: number; readonly body: string | SealedAnswer }
  | { readonly state: "mismatch" }
  | { readonly state: "inProgress" };

/** A request that is being handled, under its Idempotency-Key. */
export interface HeldRequest {
  readonly organizationId: string;
  readonly key: string;
  readonly createdId: string;
  /** Which handling of the request this is: one that began later, because this one took too long, has another. */
  readonly holder: string;
}

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
  const holder = crypto.randomUUID();
  const begun = await database.pool.query<{ createdId: string }>(
    `insert into idempotency (organization_id, key, request_hash, created_id, holder) values ($1, $2, $3, $4, $5)
     on conflict (organization_id, key) do update
       set request_hash = excluded.request_hash, status = null, body = null, sealed = null, master_key = null, created_at = now(),
         holder = excluded.holder,
         created_id = case when idempotency.request_hash = excluded.request_hash
           and idempotency.created_at >= now() - interval '${keptFor}'
           then idempotency.created_id else excluded.created_id end
       where idempotency.created_at < now() - interval '${keptFor}'
         or (idempotency.status is null and idempotency.created_at < now() - interval '${givenUpAfter}')
     returning created_id as "createdId"`,
    [organizationId, key, requestHash, newId(), holder],
  );
  const createdId = begun.rows[0]?.createdId;
  if (createdId !== undefined) return { state: "new", held: { organizationId, key, createdId, holder } };
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
  const { status, body, sealed, masterKey } = known;
  if (status === null) return { state: "inProgress" };
  if (sealed !== null && masterKey !== null)
    return { state: "replay", status, body: { sealed, masterKey, createdId: known.createdId } };
  return body === null ? { state: "inProgress" } : { state: "replay", status, body };
}

/**
 * Opens an answer that has a secret.
 * @throws ConflictError if the master key is missing, or the row was changed
 */
export function openAnswer(vault: Vault, { createdId, ...sealed }: SealedAnswer): Promise<string> {
  return vault.open(boundTo(createdId), sealed);
}

/** SQL condition: the place is still that of the handling, whose parts are the first three parameters. */
const isHeld = "organization_id = $1 and key = $2 and holder = $3";
const partsOf = ({ organizationId, key, holder }: HeldRequest): string[] => [organizationId, key, holder];

const lostPlace = (): ConflictError =>
  new ConflictError(
    "a repetition of this request is handled in its place, since this one took too long: send it again",
    1,
  );

/**
 * The database for what makes a secret in place of the one before. Each transaction is refused once a repetition holds the place, and
 * keeps one from taking it until it has ended: of two that run at once, the one that holds the place makes the later secret.
 */
export function holdingRequest(database: Database, held: HeldRequest): Database {
  return {
    ...database,
    transaction: (work) =>
      database.transaction(async (transaction) => {
        await requireHeld(transaction, held);
        return work(transaction);
      }),
  };
}

async function requireHeld(transaction: Queryable, held: HeldRequest): Promise<void> {
  const { rowCount } = await transaction.query(
    `select from idempotency where ${isHeld} for no key update`,
    partsOf(held),
  );
  if (rowCount === 0) throw lostPlace();
}

/**
 * Stores the answer of a request, which has a secret, to return it again: nobody can read it without the master key.
 * @throws ConflictError if a repetition holds the place: that one's secret counts
 */
export async function finishSealed(
  database: Database,
  vault: Vault,
  held: HeldRequest,
  status: number,
  body: string,
): Promise<void> {
  await sealing(database, async (transaction) => {
    const { sealed, masterKey } = await vault.seal(boundTo(held.createdId), body);
    const { rowCount } = await transaction.query(
      `update idempotency set status = $4, sealed = $5, master_key = $6 where ${isHeld}`,
      [...partsOf(held), status, sealed, masterKey],
    );
    if (rowCount === 0) throw lostPlace();
  });
}

/** Stores the answer of a request, to return it again, unless a repetition holds the place: that one's answer is kept. */
export async function finishRequest(
  database: Database,
  held: HeldRequest,
  status: number,
  body: string,
): Promise<void> {
  await database.pool.query(`update idempotency set status = $4, body = $5 where ${isHeld}`, [
    ...partsOf(held),
    status,
    body,
  ]);
}

/**
 * Records that the request failed, perhaps after it took effect. It may be sent again at once, with the same
 * `createdId`.
 */
export async function abandonRequest(database: Database, held: HeldRequest): Promise<void> {
  await database.pool.query(
    `update idempotency set created_at = created_at - interval '${givenUpAfter}' where ${isHeld} and status is null`,
    partsOf(held),
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
