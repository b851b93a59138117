import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import { ConflictError, InvalidInputError } from "../../domain/errors/errors.ts";
import { invitationDays, type InviteUser } from "../../domain/people/invitation.ts";
import { invitationIssuer, type Role, type SignInIdentity, type User } from "../../domain/people/user.ts";
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
 * @throws ConflictError if somebody of the organization has the address
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
      const { rowCount } = await transaction.query(
        `insert into user_account (id, organization_id, issuer, subject, email, name, role, invited_at, last_sign_in_at)
         values ($1::uuid, $2, '${invitationIssuer}', $1::uuid::text, $3, $4, $5, now(), null) on conflict (id) do nothing`,
        [id, organizationId, email, name, role],
      );
      if (rowCount === 0) return await invitedBefore(transaction, organizationId, id, mailing);
      return await invite(transaction, { organizationId, userId: id, email }, mailing);
    });
  } catch (error) {
    // Two invited the same person at once.
    if (isUniqueViolation(error)) throw hasAddress(email);
    throw error;
  }
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

/** Ends the links of a person that nobody has used. */
export async function endInvitations(transaction: Queryable, userId: string): Promise<void> {
  await transaction.query("delete from login_link where user_id = $1", [userId]);
}

/**
 * Makes whoever signs in by a provider for the first time the person who was invited with their address, which the provider has verified.
 * From then on they are known by the provider's own id, and no link signs them in.
 * @returns the role of a person who was invited, then or before; null: they were not
 */
export function joinInvited(
  database: Database,
  organizationId: string,
  { issuer, subject, email }: SignInIdentity,
): Promise<Role | null> {
  return database.transaction(async (transaction) => {
    const joined = await transaction.query<{ id: string }>(
      `update user_account set issuer = $3, subject = $4
       where organization_id = $1 and issuer = '${invitationIssuer}' and lower(email) = lower($2) and not exists (
         select from user_account known where known.organization_id = $1 and known.issuer = $3 and known.subject = $4)
       returning id`,
      [organizationId, email, issuer, subject],
    );
    for (const { id } of joined.rows) await endInvitations(transaction, id);
    const { rows } = await transaction.query<{ role: Role }>(
      `select role from user_account
       where organization_id = $1 and issuer = $2 and subject = $3 and invited_at is not null`,
      [organizationId, issuer, subject],
    );
    return rows[0]?.role ?? null;
  });
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
