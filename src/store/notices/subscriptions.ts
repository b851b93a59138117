import { createHash } from "node:crypto";
import type { Database } from "../../database/database.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { CreateSubscription, Subscription } from "../../domain/notices/notice.ts";
import { isoTime, listRows } from "../cursor.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Sealed, Vault } from "../secrets/vault.ts";
import type { NotifiedPerson } from "./person.ts";
import { enterPerson } from "./preferences.ts";

/** Browsers that one person may subscribe. */
const subscriptionLimit = 20;
const longestUserAgent = 300;

const columns = `id, host, user_agent as "userAgent", ${isoTime("created_at")} as "createdAt", ${isoTime("sent_at")} as "sentAt"`;

/**
 * Subscribes a browser to a person's notices. A browser that is known is theirs from then on, with its new keys.
 * @throws ConflictError if the person has too many
 */
export function createSubscription(
  database: Database,
  vault: Vault,
  person: NotifiedPerson,
  input: CreateSubscription & { readonly id: string; readonly userAgent: string | null },
): Promise<Subscription> {
  const hash = createHash("sha256").update(input.endpoint).digest();
  return sealing(database, async (transaction) => {
    await enterPerson(transaction, person);
    await transaction.query("select from notice_preference where user_id = $1 for update", [person.userId]);
    // Another person who used the browser before gets no notices there any more.
    await transaction.query("delete from push_subscription where endpoint_hash = $1", [hash]);
    const { rows: counted } = await transaction.query<{ count: number }>(
      "select count(*)::integer as count from push_subscription where user_id = $1",
      [person.userId],
    );
    if ((counted[0]?.count ?? 0) >= subscriptionLimit) {
      throw new ConflictError(`you have subscribed ${subscriptionLimit} browsers: delete one first`);
    }
    const { sealed, masterKey } = await vault.seal(
      input.id,
      JSON.stringify({ endpoint: input.endpoint, keys: input.keys }),
    );
    const { rows } = await transaction.query<Subscription>(
      `insert into push_subscription (id, organization_id, user_id, endpoint_hash, host, user_agent, sealed, master_key)
       values ($1, $2, $3, $4, $5, $6, $7, $8) returning ${columns}`,
      [
        input.id,
        person.organizationId,
        person.userId,
        hash,
        new URL(input.endpoint).host,
        input.userAgent?.slice(0, longestUserAgent).replaceAll("\0", "").toWellFormed() ?? null,
        sealed,
        masterKey,
      ],
    );
    return rows[0] as Subscription;
  });
}

/**
 * Lists a person's browsers, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listSubscriptions(
  database: Database,
  { organizationId, userId }: NotifiedPerson,
  query: PageQuery,
): Promise<Page<Subscription>> {
  return listRows<Subscription>(database, organizationId, query, {
    table: "push_subscription",
    columns,
    condition: "user_id = $5",
    values: [userId],
  });
}

/** Ends a browser's subscription. @throws NotFoundError */
export async function deleteSubscription(
  database: Database,
  { userId }: NotifiedPerson,
  id: string,
): Promise<Subscription> {
  const { rows } = await database.pool.query<Subscription>(
    `delete from push_subscription where id = $1 and user_id = $2 returning ${columns}`,
    [id, userId],
  );
  if (rows[0] === undefined) throw new NotFoundError(`subscription ${id} was not found`);
  return rows[0];
}

/** Ends a subscription of which its push service says that it is gone. */
export async function dropSubscription(database: Database, id: string): Promise<void> {
  await database.pool.query("delete from push_subscription where id = $1", [id]);
}

/** Opens what a subscription is sealed with. @throws ConflictError if the master key is missing */
export async function openSubscription(vault: Vault, id: string, sealed: Sealed): Promise<CreateSubscription> {
  return JSON.parse(await vault.open(id, sealed)) as CreateSubscription;
}
