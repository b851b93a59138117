import type { Database } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Delivery, DeliveryDetail } from "../../domain/webhooks/webhook.ts";
import { isoTime, listRows } from "../cursor.ts";
import { removeRows } from "../prune.ts";
import type { Sealed } from "../secrets/vault.ts";
import { one } from "../one-row.ts";

const columns = `id, webhook_id as "webhookId", type, status, attempts,
  case when status = 'pending' then ${isoTime("next_attempt_at")} end as "nextAttemptAt",
  ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

/**
 * Lists webhook deliveries, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listDeliveries(
  database: Database,
  organizationId: string,
  query: PageQuery & { readonly webhookId?: string | undefined; readonly status?: Delivery["status"] | undefined },
): Promise<Page<Delivery>> {
  return listRows<Delivery>(database, organizationId, query, {
    table: "webhook_delivery",
    columns,
    condition: "($5::uuid is null or webhook_id = $5) and ($6::text is null or status = $6)",
    values: [query.webhookId, query.status],
  });
}

/**
 * Reads a delivery with its data and its attempts.
 * @throws NotFoundError
 */
export async function getDelivery(database: Database, organizationId: string, id: string): Promise<DeliveryDetail> {
  const { rows } = await database.pool.query<DeliveryDetail>(
    `select ${columns}, data, coalesce((select jsonb_agg(jsonb_build_object('at', ${isoTime("webhook_attempt.at")}, 'durationMs', duration_ms,
         'status', webhook_attempt.status, 'error', error) order by at) from webhook_attempt
       where delivery_id = webhook_delivery.id), '[]') as log
     from webhook_delivery where id = $1 and organization_id = $2`,
    [id, organizationId],
  );
  return one(rows, "delivery", id);
}

/**
 * Sends a finished delivery again, with a new series of attempts.
 * @throws NotFoundError
 * @throws ConflictError if the delivery is pending, or its webhook is disabled
 */
export async function resendDelivery(database: Database, organizationId: string, id: string): Promise<DeliveryDetail> {
  const { rowCount } = await database.pool.query(
    `update webhook_delivery set status = 'pending', attempts = 0, next_attempt_at = now(), updated_at = now()
     where id = $1 and organization_id = $2 and status <> 'pending'
       and exists (select from webhook where webhook.id = webhook_delivery.webhook_id and enabled)`,
    [id, organizationId],
  );
  const delivery = await getDelivery(database, organizationId, id);
  if (rowCount === 1) return delivery;
  if (delivery.status === "pending")
    throw new ConflictError(`delivery ${id} is still pending: it will be sent without a replay`);
  throw new ConflictError(`webhook ${delivery.webhookId} is disabled: enable it first`);
}

/** A delivery that a worker has claimed to send it. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly organizationId: string;
  readonly webhookId: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  /** Number of attempts, including this one. It is the fence: a result of an older attempt changes nothing. */
  readonly attempts: number;
  readonly url: string;
  readonly secret: Sealed;
}

/**
 * Claims due deliveries for `leaseMs` milliseconds, after which they are due again for any worker.
 * @param busy ids of webhooks that have enough requests under way
 */
export async function claimDeliveries(
  database: Database,
  { limit, leaseMs, busy }: { readonly limit: number; readonly leaseMs: number; readonly busy: readonly string[] },
): Promise<ClaimedDelivery[]> {
  const { rows } = await database.pool.query<Omit<ClaimedDelivery, "secret"> & Sealed>({
    name: "claim_deliveries",
    text: `with due as (
             select webhook_delivery.id from webhook_delivery join webhook on webhook.id = webhook_id
             where status = 'pending' and next_attempt_at <= now() and webhook.enabled and not webhook_id = any($3::uuid[])
             order by next_attempt_at limit $1 for update of webhook_delivery skip locked),
           claimed as (
             update webhook_delivery set attempts = attempts + 1,
               next_attempt_at = now() + $2 * interval '1 millisecond'
             where id in (select id from due) returning *)
           select claimed.id, claimed.organization_id as "organizationId", webhook_id as "webhookId", type, data,
             claimed.created_at as "createdAt", attempts, url, sealed, master_key as "masterKey"
           from claimed join webhook on webhook.id = webhook_id`,
    values: [limit, leaseMs, busy],
  });
  return rows.map(({ sealed, masterKey, ...rest }) => ({ ...rest, secret: { sealed, masterKey } }));
}

/** The result of one HTTP request. `status` is the HTTP status, null if there was no answer. */
export interface AttemptResult {
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
}

/**
 * Records the result of an attempt.
 * @param outcome `retryMs`: milliseconds until the next attempt
 * @returns false if another worker has claimed the delivery meanwhile, so that the outcome does not count
 */
export async function finishAttempt(
  database: Database,
  delivery: ClaimedDelivery,
  result: AttemptResult,
  outcome: "delivered" | "dead" | { readonly retryMs: number },
): Promise<boolean> {
  const { retryMs } = typeof outcome === "string" ? { retryMs: 0 } : outcome;
  const { rowCount } = await database.pool.query(
    `with logged as (
       insert into webhook_attempt (delivery_id, duration_ms, status, error)
       select id, $3, $4, $5 from webhook_delivery where id = $1)
     update webhook_delivery set status = $6, next_attempt_at = now() + $7 * interval '1 millisecond', updated_at = now()
     where id = $1 and attempts = $2 and status = 'pending'`,
    [
      delivery.id,
      delivery.attempts,
      result.durationMs,
      result.status,
      result.error,
      typeof outcome === "string" ? outcome : "pending",
      retryMs,
    ],
  );
  return rowCount === 1;
}

/**
 * Disables a webhook whose receiver answered that it is gone, and gives up its pending deliveries.
 * @returns how many deliveries were given up
 */
export async function disableWebhook(database: Database, id: string, reason: string): Promise<number> {
  const { rowCount } = await database.pool.query(
    `with disabled as (
       update webhook set enabled = false, disabled_reason = $2, updated_at = now() where id = $1 and enabled returning id)
     update webhook_delivery set status = 'dead', updated_at = now()
     where webhook_id = (select id from disabled) and status = 'pending'`,
    [id, reason],
  );
  return rowCount ?? 0;
}

/**
 * Deletes deliveries that were delivered or given up more than `days` days ago.
 * @returns how many
 */
export function pruneDeliveries(database: Database, days: number, signal: AbortSignal): Promise<number> {
  const condition = "status <> 'pending' and updated_at < now() - $1 * interval '1 day'";
  return removeRows(database, "webhook_delivery", { condition, values: [days] }, signal);
}
