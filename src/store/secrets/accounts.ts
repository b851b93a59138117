import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import { ConflictError, ForbiddenError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Account } from "../../domain/people/account.ts";
import {
  connectionStateOf,
  type ConnectionCheck,
  type ConnectionProblem,
} from "../../domain/repositories/connection.ts";
import { isoTime, listRows } from "../cursor.ts";
import { healthOf, untilNextCheck } from "./connection-rows.ts";
import { sealing } from "./rotation.ts";
import type { Vault } from "./vault.ts";
import { one } from "../one-row.ts";

/** The owner of an account. No other person sees it or changes it, whatever their role. */
export interface AccountOwner {
  readonly organizationId: string;
  readonly userId: string;
}

/** Most accounts of a person: each of their sessions looks through them. */
const mostAccounts = 50;

/** Most repositories that an account is shown to be refused on. */
const mostRefusals = 20;

const columns = `id, kind, web_url as "webUrl", api_url as "apiUrl", name, problems, ${isoTime("checked_at")} as "checkedAt",
  (select coalesce(json_agg(json_build_object('repository', repository.name, 'words', words) order by refused_at desc), '[]') from
    (select repository_id, words, refused_at from forge_account_refusal where account_id = forge_account.id
     order by refused_at desc limit ${mostRefusals}) refusal join repository on repository.id = repository_id) as refusals,
  ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

interface AccountRow extends Omit<Account, "health"> {
  readonly problems: readonly ConnectionProblem[];
  readonly checkedAt: string;
  readonly refusals: readonly { readonly repository: string; readonly words: string }[];
}

function shown({ problems, checkedAt, refusals, ...account }: AccountRow): Account {
  const all = [...problems, ...refusals.map(refusedOn)];
  return { ...account, health: { state: connectionStateOf(all), checkedAt, problems: all } };
}

function refusedOn({ repository, words }: AccountRow["refusals"][number]): ConnectionProblem {
  return {
    missing: `pull requests on ${repository}`,
    why: `The forge did not let you open one: ${words}.`,
    remedy: "Give the account or its token access there, then check it again.",
    essential: false,
  };
}

/** An account to add, checked already. */
export interface NewAccount extends Pick<Account, "id" | "kind" | "webUrl" | "apiUrl" | "name"> {
  readonly token: string;
  readonly username: string | null;
  readonly check: ConnectionCheck;
}

/**
 * Adds an account of a person's. Idempotent by id.
 * @throws ConflictError if the person has one for the same address, or as many as one may have, or the organization is being erased
 * @throws ForbiddenError if the person is disabled
 */
export function createAccount(
  database: Database,
  vault: Vault,
  owner: AccountOwner,
  { id, kind, webUrl, apiUrl, name, token, username, check }: NewAccount,
): Promise<Account> {
  return sealing(database, async (transaction) => {
    const known = await transaction.query<AccountRow>(
      `select ${columns} from forge_account where id = $1 and organization_id = $2 and user_id = $3`,
      [id, owner.organizationId, owner.userId],
    );
    if (known.rows.length > 0) return shown(one(known.rows, "account", id));
    await requireRoom(transaction, owner);
    const { sealed, masterKey } = await vault.seal(id, token);
    const { rows } = await transaction
      .query<AccountRow>(
        `insert into forge_account (id, organization_id, user_id, kind, web_url, api_url, name, username, sealed, master_key,
           forge_user_id, state, problems)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) returning ${columns}`,
        [
          id,
          owner.organizationId,
          owner.userId,
          kind,
          webUrl,
          apiUrl,
          name,
          username,
          sealed,
          masterKey,
          check.accountId ?? null,
          ...healthOf(check),
        ],
      )
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        throw new ConflictError(`webUrl: you have an account for ${webUrl} already: replace its token or delete it`);
      });
    return shown(one(rows, "account", id));
  });
}

/** Holds the person meanwhile, so that neither another account nor their erasure gets in between. */
async function requireRoom(transaction: Queryable, { organizationId, userId }: AccountOwner): Promise<void> {
  const { rows: held } = await transaction.query<{ isDisabled: boolean }>(
    `select disabled_at is not null as "isDisabled" from user_account where id = $1 and organization_id = $2
     for no key update`,
    [userId, organizationId],
  );
  if (held[0]?.isDisabled !== false) throw new ForbiddenError("you are disabled here: ask an admin of this server");
  const { rows } = await transaction.query<{ count: number; isErased: boolean }>(
    `select (select count(*)::integer from forge_account where user_id = $2) as count,
       exists (select from erasure where organization_id = $1) as "isErased"`,
    [organizationId, userId],
  );
  const [{ count, isErased } = { count: 0, isErased: true }] = rows;
  if (isErased) throw new ConflictError("the organization is being erased: nothing can be connected to it");
  if (count < mostAccounts) return;
  throw new ConflictError(`a person has at most ${mostAccounts} accounts: delete one that is not needed`);
}

/**
 * Lists a person's accounts, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listAccounts(
  database: Database,
  { organizationId, userId }: AccountOwner,
  query: PageQuery,
): Promise<Page<Account>> {
  const page = await listRows<AccountRow>(database, organizationId, query, {
    table: "forge_account",
    columns,
    condition: "user_id = $5",
    values: [userId],
  });
  return { ...page, items: page.items.map(shown) };
}

/** Reads an account. @throws NotFoundError if the person has no such account */
export async function getAccount(
  database: Database,
  { organizationId, userId }: AccountOwner,
  id: string,
): Promise<Account> {
  const { rows } = await database.pool.query<AccountRow>(
    `select ${columns} from forge_account where id = $1 and organization_id = $2 and user_id = $3`,
    [id, organizationId, userId],
  );
  return shown(one(rows, "account", id));
}

/** The owner of an account at a forge. */
export interface HolderOfAccount {
  readonly userId: string;
  /** The address that the account is for. */
  readonly webUrl: string;
}

/** The people of an organization who connected the account that the forge knows by this id, except disabled ones. */
export async function holdersOfAccount(
  database: Queryable,
  organizationId: string,
  forgeUserId: string,
): Promise<HolderOfAccount[]> {
  const { rows } = await database.query<HolderOfAccount>(
    `select forge_account.user_id as "userId", web_url as "webUrl" from forge_account
       join user_account person on person.id = forge_account.user_id and person.disabled_at is null
     where forge_account.organization_id = $1 and forge_user_id = $2`,
    [organizationId, forgeUserId],
  );
  return rows;
}

/**
 * Replaces an account's token, and lets it be tried again everywhere.
 * @throws NotFoundError if the person has no such account
 */
export function updateAccount(
  database: Database,
  vault: Vault,
  { organizationId, userId }: AccountOwner,
  id: string,
  given: Pick<NewAccount, "name" | "token" | "username" | "check">,
): Promise<Account> {
  return sealing(database, async (transaction) => {
    const { sealed, masterKey } = await vault.seal(id, given.token);
    const replaced = await transaction.query(
      `update forge_account set sealed = $4, master_key = $5, name = $6, username = $7, forge_user_id = $8, state = $9, problems = $10,
         checked_at = now(), next_check_at = now() + ${untilNextCheck}, updated_at = now()
       where id = $1 and organization_id = $2 and user_id = $3`,
      [
        id,
        organizationId,
        userId,
        sealed,
        masterKey,
        given.name,
        given.username,
        given.check.accountId ?? null,
        ...healthOf(given.check),
      ],
    );
    if (replaced.rowCount === 1)
      await transaction.query("delete from forge_account_refusal where account_id = $1", [id]);
    const { rows } = await transaction.query<AccountRow>(
      `select ${columns} from forge_account where id = $1 and organization_id = $2 and user_id = $3`,
      [id, organizationId, userId],
    );
    return shown(one(rows, "account", id));
  });
}

/** Deletes an account with its token. @throws NotFoundError if the person has no such account */
export async function deleteAccount(
  database: Database,
  { organizationId, userId }: AccountOwner,
  id: string,
): Promise<Account> {
  const { rows } = await database.pool.query<AccountRow>(
    `delete from forge_account where id = $1 and organization_id = $2 and user_id = $3 returning ${columns}`,
    [id, organizationId, userId],
  );
  return shown(one(rows, "account", id));
}
