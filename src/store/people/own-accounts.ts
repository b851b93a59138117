import type { Database, Queryable } from "../../database/database.ts";
import { NotFoundError } from "../../domain/errors/errors.ts";
import type { Principal } from "../../domain/people/key.ts";
import type { OwnOrganization } from "../../domain/people/me.ts";
import { defaultOrganization } from "../../domain/people/organization.ts";
import { scopesOf, type Role, type SignInIdentity } from "../../domain/people/user.ts";
import { joinInvited } from "./invitations.ts";
import { hashOf, randomToken } from "./tokens.ts";

// A person may have an account in each of several organizations: one identity of one provider (issuer and subject), by which each of them
// is known. Nothing else makes two accounts the same person's; an address does not.

/** The account that a person who signed in at a provider is signed in to. */
export interface ChosenAccount {
  readonly organizationId: string;
  readonly userId: string;
  readonly role: Role;
  /** Whether this sign-in took up an invitation to another organization. */
  readonly isInvitedElsewhere: boolean;
}

interface AccountRow {
  readonly userId: string;
  readonly organizationId: string;
  readonly role: Role;
  readonly isDisabled: boolean;
  readonly isRefused: boolean;
}

/**
 * Signs a person in who was authenticated by a provider: takes up the invitations to their address, creates or updates their account in the
 * organization `default` if the operator lets them in, and chooses one of their accounts: that of the organization they used last, or else
 * the one of their newest invitation. What one organization's admin does, such as an invitation, does not decide where somebody begins who
 * is of another.
 * @param role in the organization `default`, as the operator's lists say; null: they do not let the person in. A role that an admin set
 * stays, unless the lists make the person an admin
 * @returns `refused` if no account is left that lets the person in, `disabled` if each of these is disabled
 */
export function signInPerson(
  database: Database,
  identity: SignInIdentity,
  role: Role | null,
): Promise<ChosenAccount | "refused" | "disabled"> {
  return database.transaction(async (transaction) => {
    const joined = await joinInvited(transaction, identity);
    if (role !== null) await letIn(transaction, identity, role);
    await updateAll(transaction, identity, role === null);
    const { rows } = await transaction.query<AccountRow>(
      `select account.id as "userId", account.organization_id as "organizationId", account.role,
         account.disabled_at is not null as "isDisabled", account.refused_at is not null as "isRefused"
       from user_account account where account.issuer = $1 and account.subject = $2
         and not exists (select from erasure where erasure.organization_id = account.organization_id)
       order by account.last_sign_in_at desc nulls last, account.invited_at desc nulls last, account.created_at desc, account.id`,
      [identity.issuer, identity.subject],
    );
    const admitted = rows.filter(({ isRefused }) => !isRefused);
    const chosen = admitted.find(({ isDisabled }) => !isDisabled);
    if (chosen === undefined) return admitted.length === 0 ? "refused" : "disabled";
    const { organizationId, userId, role: theirs } = chosen;
    await noteArrival(transaction, userId);
    return { organizationId, userId, role: theirs, isInvitedElsewhere: joined.some((id) => id !== userId) };
  });
}

/** Creates a person's account in the organization `default`, in which they have not arrived yet, or makes an admin of whom the operator named. */
async function letIn(transaction: Queryable, { issuer, subject }: SignInIdentity, role: Role): Promise<void> {
  await transaction.query(
    `insert into user_account (id, organization_id, issuer, subject, name, role, last_sign_in_at)
     select $1, id, $2, $3, '', $4, null from organization where name = $5
     on conflict (organization_id, issuer, subject) do update set role = 'admin'
       where excluded.role = 'admin' and user_account.disabled_at is null`,
    [crypto.randomUUID(), issuer, subject, role, defaultOrganization],
  );
}

/**
 * Gives each account of a person the name and address that their provider has now, and notes whether the operator's lists let them in. An
 * account that is disabled stays as it is.
 */
async function updateAll(transaction: Queryable, identity: SignInIdentity, isRefused: boolean): Promise<void> {
  await transaction.query(
    `update user_account account set email = $3, name = $4,
       refused_at = case when $5 and account.invited_at is null and exists (
         select from organization where id = account.organization_id and name = $6) then coalesce(account.refused_at, now()) end
     where account.issuer = $1 and account.subject = $2 and account.disabled_at is null`,
    [
      identity.issuer,
      identity.subject,
      identity.email,
      identity.name.replaceAll("\0", "").toWellFormed().slice(0, 200),
      isRefused,
      defaultOrganization,
    ],
  );
}

/** From here on it is the account that the person used last. */
async function noteArrival(transaction: Queryable, userId: string): Promise<void> {
  await transaction.query("update user_account set last_sign_in_at = now() where id = $1", [userId]);
}

/**
 * The browser whose cookie's hash is $1, as the identity that a provider signed it in by: an account whose person came by a link has none,
 * also if a provider has signed the same person in since, elsewhere. Whoever made or found that link is not known to be them.
 */
const signedIn = `browser_session browser join user_account present on present.id = browser.user_id
  and present.issuer = browser.issuer and present.disabled_at is null`;
/** The accounts of the same person, in organizations that let them in. */
const others = `user_account account join organization on organization.id = account.organization_id`;
const isOpen = `account.issuer = present.issuer and account.subject = present.subject and account.disabled_at is null
  and account.refused_at is null and not exists (select from erasure where erasure.organization_id = account.organization_id)`;

/**
 * The organizations that a signed-in browser can switch between, by name, with the present one; none if no provider signed it in.
 * @param token the cookie's value
 */
export async function ownOrganizations(database: Database, token: string): Promise<OwnOrganization[]> {
  const { rows } = await database.pool.query<OwnOrganization>({
    name: "own_organizations",
    text: `select organization.id, organization.name, account.role from ${signedIn}, ${others}
           where browser.hash = $1 and (${isOpen} or account.id = present.id) order by lower(organization.name), organization.id`,
    values: [hashOf(token)],
  });
  return rows;
}

/** A browser that was signed in to another organization. */
export interface Switched {
  /** The value of its new cookie; the one before is good for nothing any more. */
  readonly token: string;
  readonly principal: Principal;
}

/**
 * Signs a browser in to another organization of the same person: as the identity, and until the time, of its sign-in at the provider.
 * @param token the cookie's value
 * @throws NotFoundError if the person, as the provider knows them, has no account there that lets them in, or no provider signed the browser in
 */
export function switchOrganization(database: Database, token: string, organizationId: string): Promise<Switched> {
  return database.transaction(async (transaction) => {
    // Of two switches at once, the second finds no browser.
    const { rows } = await transaction.query<{ userId: string; role: Role }>(
      `select account.id as "userId", account.role from ${signedIn}, ${others}
       where browser.hash = $1 and account.organization_id = $2 and ${isOpen} for update of browser`,
      [hashOf(token), organizationId],
    );
    const [account] = rows;
    if (account === undefined) throw new NotFoundError(`organization ${organizationId} was not found`);
    const { userId, role } = account;
    const next = randomToken();
    const scopes = scopesOf(role);
    await transaction.query(
      `with before as (delete from browser_session where hash = $1 returning *)
       insert into browser_session (hash, organization_id, user_id, scopes, issuer, address, user_agent, created_at, expires_at)
       select $2, $3, $4, $5, issuer, address, user_agent, created_at, expires_at from before`,
      [hashOf(token), hashOf(next), organizationId, userId, scopes],
    );
    await noteArrival(transaction, userId);
    return { token: next, principal: { organizationId, keyId: null, userId, scopes, automationIds: null } };
  });
}
