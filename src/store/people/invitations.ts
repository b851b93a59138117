import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import { ConflictError, InvalidInputError } from "../../domain/errors/errors.ts";
import { invitationDays, type InviteUser } from "../../domain/people/invitation.ts";
import { invitationIssuer, type SignInIdentity, type User } from "../../domain/people/user.ts";
import { one } from "../one-row.ts";
import { sealing } from "../secrets/rotation.ts";
import { addInvitationMail, type Mailing } from "./invitation-mails.ts";
import { hashOf, randomToken } from "./tokens.ts";
import { userColumns } from "./user-columns.ts";

/** A person who was invited, and the token of the link that signs them in. */
export interface Invitation {
  readonly user: User;
  readonly token: string;
  readonly expiresAt: string;
  /** The address to which the link is mailed; null: to none. */
  readonly mailedTo: string | null;
}

/** A person to invite. */
interface NewInvited extends Pick<InviteUser, "name" | "email" | "role"> {
  readonly id?: string;
}

/**
 * Adds a person to an organization before they sign in, with a link that does, and mails it to their address if there is one. Idempotent by
 * id, except that each call makes another link, which ends those before.
 * @param mailing null: nothing is mailed
 * @throws ConflictError if a person of the organization has the address
 */
export async function inviteUser(
  database: Database,
  organizationId: string,
  { id = crypto.randomUUID(), name, email = null, role }: NewInvited,
  mailing: Mailing | null,
): Promise<Invitation> {
  try {
    return await sealing(database, async (transaction) => {
      await requireNewAddress(transaction, organizationId, id, email);
      return insertInvited(transaction, organizationId, { id, name, email, role }, mailing);
    });
  } catch (error) {
    // Two invited the same person at once.
    if (isUniqueViolation(error)) throw hasAddress(email);
    throw error;
  }
}

/**
 * Adds a person with a link to an organization in which no other person has their address; again with the same id makes another link.
 * Call it in a transaction of `sealing`.
 */
export async function insertInvited(
  transaction: Queryable,
  organizationId: string,
  { id = crypto.randomUUID(), name, email = null, role }: NewInvited,
  mailing: Mailing | null,
): Promise<Invitation> {
  const { rowCount } = await transaction.query(
    `insert into user_account (id, organization_id, issuer, subject, email, name, role, invited_at, last_sign_in_at)
     values ($1::uuid, $2, '${invitationIssuer}', $1::uuid::text, $3, $4, $5, now(), null) on conflict (id) do nothing`,
    [id, organizationId, email, name, role],
  );
  if (rowCount === 0) return invitedBefore(transaction, organizationId, id, mailing);
  return invite(transaction, { organizationId, userId: id, email }, mailing);
}

/**
 * Makes another link for a person who was invited, and mails it as the first. Those before end.
 * @param mailing null: nothing is mailed
 * @throws NotFoundError
 * @throws InvalidInputError if the person signs in by an identity provider
 * @throws ConflictError if the person is disabled
 */
export function inviteAgain(
  database: Database,
  organizationId: string,
  id: string,
  mailing: Mailing | null,
): Promise<Invitation> {
  return sealing(database, (transaction) => invitedBefore(transaction, organizationId, id, mailing));
}

async function invitedBefore(
  transaction: Queryable,
  organizationId: string,
  id: string,
  mailing: Mailing | null,
): Promise<Invitation> {
  const { rows } = await transaction.query<User>(
    `select ${userColumns} from user_account where id = $1 and organization_id = $2 for no key update`,
    [id, organizationId],
  );
  const user = one(rows, "user", id);
  if (user.issuer !== invitationIssuer)
    throw new InvalidInputError(
      user.issuer === "" ? "this person was erased" : `this person signs in by ${user.issuer}: no link does instead`,
    );
  if (user.disabledAt !== null) throw new ConflictError("this person is disabled: enable them first");
  await endInvitations(transaction, id);
  return invite(transaction, { organizationId, userId: id, email: user.email }, mailing);
}

/** Ends the unused links of a person. */
export async function endInvitations(transaction: Queryable, userId: string): Promise<void> {
  await transaction.query("delete from login_link where user_id = $1", [userId]);
}

/**
 * Makes whoever signs in by a provider the person who was invited with their address, which the provider has verified, in each organization
 * that invited them and in which they have no account yet. From then on they are known there by the provider's own id, and no link signs
 * them in. Browsers that a link signed in stay so.
 * @returns the ids of the accounts that are theirs from now on
 */
export async function joinInvited(
  transaction: Queryable,
  { issuer, subject, email }: SignInIdentity,
): Promise<readonly string[]> {
  const { rows } = await transaction.query<{ id: string }>(
    `update user_account account set issuer = $2, subject = $3
     where account.issuer = '${invitationIssuer}' and lower(account.email) = lower($1) and not exists (
         select from user_account known where known.organization_id = account.organization_id and known.issuer = $2
           and known.subject = $3)
       and not exists (select from erasure where erasure.organization_id = account.organization_id)
     returning id`,
    [email, issuer, subject],
  );
  for (const { id } of rows) await endInvitations(transaction, id);
  return rows.map(({ id }) => id);
}

async function invite(
  transaction: Queryable,
  person: { readonly organizationId: string; readonly userId: string; readonly email: string | null },
  mailing: Mailing | null,
): Promise<Invitation> {
  const { organizationId, userId, email } = person;
  const link = await insertLink(transaction, organizationId, userId);
  const mailedTo = mailing === null ? null : email;
  if (mailing !== null && email !== null) {
    await addInvitationMail(transaction, mailing, { organizationId, userId, token: link.token });
  }
  const { rows } = await transaction.query<User>(`select ${userColumns} from user_account where id = $1`, [userId]);
  return { user: one(rows, "user", userId), ...link, mailedTo };
}

async function insertLink(transaction: Queryable, organizationId: string, userId: string) {
  const token = randomToken();
  const { rows } = await transaction.query<{ expires_at: Date }>(
    `insert into login_link (hash, organization_id, user_id, scopes, expires_at)
     values ($1, $2, $3, '{}', now() + $4 * interval '1 day') returning expires_at`,
    [hashOf(token), organizationId, userId, invitationDays],
  );
  return { token, expiresAt: one(rows, "link", userId).expires_at.toISOString() };
}

/** @param id whose own address it may be */
async function requireNewAddress(
  transaction: Queryable,
  organizationId: string,
  id: string,
  email: string | null,
): Promise<void> {
  if (email === null) return;
  const { rows } = await transaction.query(
    "select from user_account where organization_id = $1 and lower(email) = lower($2) and id <> $3 limit 1",
    [organizationId, email, id],
  );
  if (rows.length > 0) throw hasAddress(email);
}

const hasAddress = (email: string | null): ConflictError =>
  new ConflictError(`email: somebody of this organization has the address ${email}`);
