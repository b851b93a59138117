import { createHash } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, NotFoundError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { CreateSubscription, RenewSubscription, Subscription } from "../../domain/notices/notice.ts";
import { isoTime, listRows } from "../cursor.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Sealed, Vault } from "../secrets/vault.ts";
import type { NotifiedPerson } from "./person.ts";
import { enterPerson } from "./preferences.ts";

/** Browsers that one person may subscribe. */
const subscriptionLimit = 20;
const longestUserAgent = 300;

const hashOf = (text: string): Buffer => createHash("sha256").update(text).digest();
/** The sealed keys with which this server sends to a browser. */
const sealedText = ({ endpoint, keys }: Pick<CreateSubscription, "endpoint" | "keys">): string =>
  JSON.stringify({ endpoint, keys });

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
  const renewalHash = input.renewalSecret === undefined ? null : hashOf(input.renewalSecret);
  return sealing(database, async (transaction) => {
    await enterPerson(transaction, person);
    await transaction.query("select from notice_preference where user_id = $1 for update", [person.userId]);
    // Another person who used the browser before gets no notices there any more.
    await transaction.query("delete from push_subscription where endpoint_hash = $1 or renewal_hash = $2", [
      hashOf(input.endpoint),
      renewalHash,
    ]);
    const { rows: counted } = await transaction.query<{ count: number }>(
      "select count(*)::integer as count from push_subscription where user_id = $1",
      [person.userId],
    );
    if ((counted[0]?.count ?? 0) >= subscriptionLimit) {
      throw new ConflictError(`you have subscribed ${subscriptionLimit} browsers: delete one first`);
    }
    const { sealed, masterKey } = await vault.seal(input.id, sealedText(input));
    const { rows } = await transaction.query<Subscription>(
      `insert into push_subscription (id, organization_id, user_id, endpoint_hash, host, user_agent, sealed, master_key, renewal_hash)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning ${columns}`,
      [
        input.id,
        person.organizationId,
        person.userId,
        hashOf(input.endpoint),
        new URL(input.endpoint).host,
        input.userAgent?.slice(0, longestUserAgent).replaceAll("\0", "").toWellFormed() ?? null,
        sealed,
        masterKey,
        renewalHash,
      ],
    );
    return rows[0] as Subscription;
  });
}

/**
 * Replaces the address of a browser by a new one. The caller proves itself by the secret that the browser chose when it
 * subscribed.
 * @throws NotFoundError if there is no such subscription any more, or its person is disabled
 */
export function renewSubscription(
  database: Database,
  vault: Vault,
  { renewalSecret, ...target }: RenewSubscription,
): Promise<Subscription> {
  return sealing(database, async (transaction) => {
    const { rows } = await transaction.query<{ id: string }>(
      `select subscription.id from push_subscription subscription join user_account on user_account.id = user_id
       where renewal_hash = $1 and disabled_at is null for update of subscription`,
      [hashOf(renewalSecret)],
    );
    const id = rows[0]?.id;
    if (id === undefined) throw new NotFoundError("renewalSecret: is of no subscription that there is");
    return moveSubscription(transaction, vault, id, target);
  });
}

async function moveSubscription(
  transaction: Queryable,
  vault: Vault,
  id: string,
  target: Omit<RenewSubscription, "renewalSecret">,
): Promise<Subscription> {
  const endpointHash = hashOf(target.endpoint);
  await transaction.query("delete from push_subscription where endpoint_hash = $1 and id <> $2", [endpointHash, id]);
  const { sealed, masterKey } = await vault.seal(id, sealedText(target));
  const { rows } = await transaction.query<Subscription>(
    `update push_subscription set endpoint_hash = $2, host = $3, sealed = $4, master_key = $5 where id = $1 returning ${columns}`,
    [id, endpointHash, new URL(target.endpoint).host, sealed, masterKey],
  );
  return rows[0] as Subscription;
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
