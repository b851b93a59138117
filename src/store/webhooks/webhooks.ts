import { randomBytes } from "node:crypto";
import type { Database } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import { testEvent, type Webhook } from "../../domain/webhooks/webhook.ts";
import { isoTime, listRows } from "../cursor.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Vault } from "../secrets/vault.ts";
import { one } from "../one-row.ts";

const columns = `id, url, events, enabled, disabled_reason as "disabledReason",
  ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

/** A secret in the format of Standard Webhooks (https://www.standardwebhooks.com), which asks for 24 to 64 bytes. */
const newSecret = (): string => `whsec_${randomBytes(32).toString("base64")}`;

/**
 * Creates a webhook. Idempotent by id, except that each call sets a new secret.
 * @returns the webhook with its signing secret, which is shown only now
 */
export function createWebhook(
  database: Database,
  vault: Vault,
  organizationId: string,
  input: { readonly id: string; readonly url: string; readonly events: readonly string[] },
): Promise<Webhook & { secret: string }> {
  return sealing(database, async (transaction) => {
    const secret = newSecret();
    const { sealed, masterKey } = await vault.seal(input.id, secret);
    const { rows } = await transaction.query<Webhook>(
      `insert into webhook (id, organization_id, url, events, sealed, master_key) values ($1, $2, $3, $4, $5, $6)
       on conflict (id) do update set sealed = excluded.sealed, master_key = excluded.master_key
       returning ${columns}`,
      [input.id, organizationId, input.url, input.events, sealed, masterKey],
    );
    return { ...(rows[0] as Webhook), secret };
  });
}

/**
 * Lists an organization's webhooks, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listWebhooks(database: Database, organizationId: string, query: PageQuery): Promise<Page<Webhook>> {
  return listRows<Webhook>(database, organizationId, query, { table: "webhook", columns });
}

/**
 * Reads a webhook.
 * @throws NotFoundError
 */
export async function getWebhook(database: Database, organizationId: string, id: string): Promise<Webhook> {
  const { rows } = await database.pool.query<Webhook>(
    `select ${columns} from webhook where id = $1 and organization_id = $2`,
    [id, organizationId],
  );
  return one(rows, "webhook", id);
}

/**
 * Changes the given fields only. Disabling a webhook gives up its pending deliveries.
 * @throws NotFoundError
 */
export async function updateWebhook(
  database: Database,
  organizationId: string,
  id: string,
  changes: {
    readonly url?: string | undefined;
    readonly events?: readonly string[] | undefined;
    readonly enabled?: boolean | undefined;
  },
): Promise<Webhook> {
  const { rows } = await database.pool.query<Webhook>(
    `with updated as (
       update webhook set url = coalesce($3, url), events = coalesce($4, events), enabled = coalesce($5, enabled),
         disabled_reason = case when $5 then null else disabled_reason end, updated_at = now()
       where id = $1 and organization_id = $2 returning ${columns}),
     given_up as (
       update webhook_delivery set status = 'dead', updated_at = now()
       where status = 'pending' and webhook_id = (select id from updated where not enabled))
     select * from updated`,
    [id, organizationId, changes.url, changes.events, changes.enabled],
  );
  return one(rows, "webhook", id);
}

/**
 * Replaces the signing secret at once.
 * @throws NotFoundError
 */
export function rotateWebhookSecret(
  database: Database,
  vault: Vault,
  organizationId: string,
  id: string,
): Promise<Webhook & { secret: string }> {
  return sealing(database, async (transaction) => {
    const secret = newSecret();
    const { sealed, masterKey } = await vault.seal(id, secret);
    const { rows } = await transaction.query<Webhook>(
      `update webhook set sealed = $3, master_key = $4, updated_at = now()
       where id = $1 and organization_id = $2 returning ${columns}`,
      [id, organizationId, sealed, masterKey],
    );
    return { ...one(rows, "webhook", id), secret };
  });
}

/**
 * Deletes a webhook with all its deliveries.
 * @throws NotFoundError
 */
export async function deleteWebhook(database: Database, organizationId: string, id: string): Promise<Webhook> {
  const { rows } = await database.pool.query<Webhook>(
    `delete from webhook where id = $1 and organization_id = $2 returning ${columns}`,
    [id, organizationId],
  );
  return one(rows, "webhook", id);
}

/**
 * Queues a test delivery. Idempotent by the delivery's id.
 * @returns the delivery's id
 * @throws NotFoundError
 * @throws ConflictError if the webhook is disabled
 */
export async function testWebhook(
  database: Database,
  organizationId: string,
  id: string,
  deliveryId: string,
): Promise<string> {
  const { rows } = await database.pool.query<{ id: string }>(
    // Locked, so that one that is being deleted is not found, instead of breaking the reference.
    `insert into webhook_delivery (id, organization_id, webhook_id, type, data)
     select $4::uuid, organization_id, id, $3, '{}' from webhook
     where id = $1 and organization_id = $2 and enabled for key share
     on conflict (id) do update set type = excluded.type returning id`,
    [id, organizationId, testEvent, deliveryId],
  );
  if (rows[0] !== undefined) return rows[0].id;
  await getWebhook(database, organizationId, id);
  throw new ConflictError(`webhook ${id} is disabled: enable it first`);
}
