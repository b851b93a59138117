import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, InvalidInputError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Role, SignInAttempt, SignInMethodId, User } from "../../domain/people/user.ts";
import { listRows } from "../cursor.ts";
import { hashOf } from "./tokens.ts";
import { one } from "../one-row.ts";
import { endInvitations } from "./invitations.ts";
import { forgetKeys } from "./principals.ts";
import { revokeSharesOfUser } from "./share-links.ts";
import { userColumns } from "./user-columns.ts";

/** Stores the state of a sign-in at a provider for ten minutes. */
export async function beginSignIn(
  database: Database,
  attempt: Omit<SignInAttempt, "redirectUrl"> & { readonly method: SignInMethodId; readonly next: string },
): Promise<void> {
  await database.pool.query(
    `insert into sign_in (state_hash, method, verifier, nonce, next, expires_at)
     values ($1, $2, $3, $4, $5, now() + interval '10 minutes')`,
    [hashOf(attempt.state), attempt.method, attempt.verifier, attempt.nonce, attempt.next],
  );
}

/** Returns and deletes what was stored under a state; null if the state is unknown, used or expired. */
export async function takeSignIn(
  database: Database,
  method: SignInMethodId,
  state: string,
): Promise<{ verifier: string; nonce: string; next: string } | null> {
  const { rows } = await database.pool.query<{ verifier: string; nonce: string; next: string; fresh: boolean }>(
    `delete from sign_in where state_hash = $1 and method = $2
     returning verifier, nonce, next, expires_at > now() as fresh`,
    [hashOf(state), method],
  );
  const [found] = rows;
  return found?.fresh === true ? { verifier: found.verifier, nonce: found.nonce, next: found.next } : null;
}

/**
 * Lists an organization's users, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listUsers(database: Database, organizationId: string, query: PageQuery): Promise<Page<User>> {
  return listRows<User>(database, organizationId, query, { table: "user_account", columns: userColumns });
}

/**
 * The user with this id or e-mail address, in capitals or not.
 * @throws InvalidInputError if there is none, several have the address, or the user is disabled
 */
export async function findUser(database: Database, organizationId: string, named: string): Promise<User> {
  const { rows } = await database.pool.query<User>(
    `select ${userColumns} from user_account
     where organization_id = $1 and (id::text = lower($2) or lower(email) = lower($2)) limit 2`,
    [organizationId, named],
  );
  const [user, other] = rows;
  if (user === undefined) throw new InvalidInputError(`no user who signed in has the id or e-mail address ${named}`);
  if (other !== undefined)
    throw new InvalidInputError(`several users have the e-mail address ${named}: name one by id`);
  if (user.disabledAt !== null) throw new InvalidInputError(`the user ${named} is disabled`);
  return user;
}

/** The organization of a user who is not disabled; null: there is none. */
export async function organizationOfUser(database: Database, id: string): Promise<string | null> {
  const { rows } = await database.pool.query<{ organizationId: string }>(
    `select organization_id as "organizationId" from user_account where id = $1 and disabled_at is null`,
    [id],
  );
  return rows[0]?.organizationId ?? null;
}

/**
 * Changes the given fields only. A user who gets disabled is signed out everywhere.
 * @throws NotFoundError
 * @throws ConflictError if no admin would be left
 */
export async function updateUser(
  database: Database,
  organizationId: string,
  id: string,
  { role, disabled }: { readonly role?: Role | undefined; readonly disabled?: boolean | undefined },
): Promise<User> {
  const updated = await database.transaction(async (transaction) => {
    if (disabled === true || (role !== undefined && role !== "admin")) {
      await requireOtherAdmin(transaction, organizationId, id);
    }
    const { rows } = await transaction.query<User>(
      `update user_account set role = coalesce($3, role),
         disabled_at = case when $4::boolean is null then disabled_at when $4 then coalesce(disabled_at, now()) end
       where id = $1 and organization_id = $2 returning ${userColumns}`,
      [id, organizationId, role, disabled],
    );
    const user = one(rows, "user", id);
    if (disabled === true) await signOut(transaction, id);
    return user;
  });
  forgetKeys(database);
  return updated;
}

/** The name of users who were erased. */
const erasedName = "deleted user";

/**
 * Erases a person: name, address, what their provider knows them by, their accounts at forges, and which browsers get
 * their notices. They are signed out, their keys are revoked, and what they asked for is a deleted user's from then on.
 * If their provider signs them in again, they are a new person.
 * @throws NotFoundError
 * @throws ConflictError if no admin would be left
 */
export async function eraseUser(database: Database, organizationId: string, id: string): Promise<User> {
  const erased = await database.transaction(async (transaction) => {
    await requireOtherAdmin(transaction, organizationId, id);
    const { rows } = await transaction.query<User>(
      `update user_account set name = $3, email = null, issuer = '', subject = 'erased ' || id, role = 'viewer',
         disabled_at = coalesce(disabled_at, now())
       where id = $1 and organization_id = $2 returning ${userColumns}`,
      [id, organizationId, erasedName],
    );
    const user = one(rows, "user", id);
    await signOut(transaction, id);
    await transaction.query("delete from forge_account where user_id = $1", [id]);
    // Their choices of notices, browsers and read marks.
    await transaction.query("delete from notice_preference where user_id = $1", [id]);
    await transaction.query("delete from push_subscription where user_id = $1", [id]);
    await transaction.query("delete from notice_delivery where user_id = $1", [id]);
    await transaction.query("delete from session_read where user_id = $1", [id]);
    // People name keys after themselves.
    await transaction.query(
      "update api_key set name = $2, revoked_at = coalesce(revoked_at, now()) where user_id = $1",
      [id, `key of a ${erasedName}`],
    );
    return user;
  });
  forgetKeys(database);
  return erased;
}

/** Signs a user out of every browser and of every program that they let act for them, and ends the links that they made or were given. */
async function signOut(transaction: Queryable, id: string): Promise<void> {
  await transaction.query("delete from browser_session where user_id = $1", [id]);
  await transaction.query("delete from oauth_grant where user_id = $1", [id]);
  await endInvitations(transaction, id);
  await revokeSharesOfUser(transaction, id);
}

/**
 * Locks the rows of all admins of the organization: of two admins who demote each other at once, one must fail. An
 * invited person who has not signed in yet does not count.
 * @throws ConflictError if this user is the only one
 */
async function requireOtherAdmin(transaction: Queryable, organizationId: string, id: string): Promise<void> {
  const admins = await transaction.query<{ id: string }>(
    `select id from user_account where organization_id = $1 and role = 'admin' and disabled_at is null
       and (last_sign_in_at is not null or id = $2)
     order by id for update`,
    [organizationId, id],
  );
  if (admins.rows.length === 1 && admins.rows[0]?.id === id) {
    throw new ConflictError("this is the last admin: make someone else an admin first");
  }
}

/**
 * Deletes sign-ins that were not finished in time.
 * @returns how many
 */
export async function pruneSignIns(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query("delete from sign_in where expires_at < now()");
  return rowCount ?? 0;
}
