import type { Database } from "../../database/database.ts";
import { removeRows } from "../retention.ts";

export type RequestState =
  /** `createdId` is what it creates: the same, however often the same request is begun before it is answered. */
  | { readonly state: "new"; readonly createdId: string }
  | { readonly state: "replay"; readonly status: number; readonly body: string }
  | { readonly state: "mismatch" }
  | { readonly state: "inProgress" };

/** An answer is kept for a day; a request whose server died before its answer is given up after a minute. */
const keptFor = "24 hours";
const givenUpAfter = "60 seconds";

/** Enters a request under its Idempotency-Key, or tells what is known under that key already. */
export async function beginRequest(
  database: Database,
  organizationId: string,
  key: string,
  requestHash: Buffer,
): Promise<RequestState> {
  const begun = await database.pool.query<{ createdId: string }>(
    `insert into idempotency (organization_id, key, request_hash) values ($1, $2, $3)
     on conflict (organization_id, key) do update
       set request_hash = excluded.request_hash, status = null, body = null, created_at = now(),
         created_id = case when idempotency.request_hash = excluded.request_hash
           and idempotency.created_at >= now() - interval '${keptFor}'
           then idempotency.created_id else excluded.created_id end
       where idempotency.created_at < now() - interval '${keptFor}'
         or (idempotency.status is null and idempotency.created_at < now() - interval '${givenUpAfter}')
     returning created_id as "createdId"`,
    [organizationId, key, requestHash],
  );
  if (begun.rows[0] !== undefined) return { state: "new", createdId: begun.rows[0].createdId };
  const { rows } = await database.pool.query<{ request_hash: Buffer; status: number | null; body: string | null }>(
    "select request_hash, status, body from idempotency where organization_id = $1 and key = $2",
    [organizationId, key],
  );
  const [known] = rows;
  if (known === undefined) return { state: "inProgress" };
  if (!known.request_hash.equals(requestHash)) return { state: "mismatch" };
  if (known.status === null || known.body === null) return { state: "inProgress" };
  return { state: "replay", status: known.status, body: known.body };
}

/** Keeps the first answer, to be given again. */
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

/** The request failed, perhaps after it had done its work: it may be made again at once, and then finds that. */
export async function abandonRequest(database: Database, organizationId: string, key: string): Promise<void> {
  await database.pool.query(
    `update idempotency set created_at = created_at - interval '${givenUpAfter}'
     where organization_id = $1 and key = $2 and status is null`,
    [organizationId, key],
  );
}

/** Forgets answers that are no longer given again. @returns how many */
export function pruneRequests(database: Database, signal: AbortSignal): Promise<number> {
  const condition = `created_at < now() - interval '${keptFor}'`;
  return removeRows(database, "idempotency", { condition, values: [] }, signal);
}
