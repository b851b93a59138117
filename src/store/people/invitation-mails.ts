import type { Database, Queryable } from "../../database/database.ts";
import type { InvitationLanguage } from "../../domain/people/invitation.ts";
import type { Sealed, Vault } from "../secrets/vault.ts";
import { outcomeColumns, type TellingOutcome } from "../telling-outcome.ts";
import { hashOf } from "./tokens.ts";

/** How the links of invitations are mailed. */
export interface Mailing {
  readonly vault: Vault;
  readonly language: InvitationLanguage;
}

/**
 * Queues a link to be mailed to the person it signs in, once the transaction is committed. Call it in a transaction of
 * `sealing`.
 */
export async function addInvitationMail(
  transaction: Queryable,
  { vault, language }: Mailing,
  link: { readonly organizationId: string; readonly userId: string; readonly token: string },
): Promise<void> {
  const id = crypto.randomUUID();
  const { sealed, masterKey } = await vault.seal(id, link.token);
  await transaction.query(
    `insert into invitation_mail (id, organization_id, user_id, link_hash, language, sealed, master_key)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [id, link.organizationId, link.userId, hashOf(link.token), language, sealed, masterKey],
  );
}

/** A mail with the link of an invitation that a worker has claimed to send it. */
export interface ClaimedInvitationMail extends Sealed {
  readonly id: string;
  readonly language: InvitationLanguage;
  /** Number of attempts, this one included; the fence of its result. */
  readonly attempts: number;
  readonly createdAt: Date;
  readonly name: string;
  readonly email: string;
  /** When the link ends. */
  readonly expiresAt: Date;
}

/**
 * Claims due mails for `leaseMs` milliseconds, after which they are due again for any worker. A link that was used, or
 * whose person may not sign in any more, is not mailed.
 */
export async function claimInvitationMails(
  database: Database,
  { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
): Promise<ClaimedInvitationMail[]> {
  const { rows } = await database.pool.query<ClaimedInvitationMail>({
    name: "claim_invitation_mails",
    text: `with due as (
             select mail.id from invitation_mail mail
             join login_link link on link.hash = mail.link_hash join user_account person on person.id = mail.user_id
             where mail.status = 'pending' and mail.next_attempt_at <= now() and link.used_at is null and link.expires_at > now()
               and person.disabled_at is null and person.email is not null
             order by mail.next_attempt_at limit $1 for update of mail skip locked),
           claimed as (
             update invitation_mail set attempts = attempts + 1, next_attempt_at = now() + $2 * interval '1 millisecond'
             where id in (select id from due) returning *)
           select claimed.id, language, attempts, claimed.created_at as "createdAt", person.name, person.email,
             link.expires_at as "expiresAt", sealed, master_key as "masterKey"
           from claimed join user_account person on person.id = claimed.user_id
           join login_link link on link.hash = claimed.link_hash`,
    values: [limit, leaseMs],
  });
  return rows;
}

/**
 * Records the outcome of an attempt, and deletes the link unless it is tried again. A later claim by another worker is
 * not changed.
 */
export async function finishInvitationMail(
  database: Database,
  { id, attempts }: Pick<ClaimedInvitationMail, "id" | "attempts">,
  outcome: TellingOutcome,
): Promise<void> {
  await database.pool.query(
    `update invitation_mail set status = $3, problem = $4, updated_at = now(), next_attempt_at = now() + $5 * interval '1 millisecond',
       sealed = case when $3 = 'pending' then sealed end, master_key = case when $3 = 'pending' then master_key end
     where id = $1 and attempts = $2 and status = 'pending'`,
    [id, attempts, ...outcomeColumns(outcome)],
  );
}
