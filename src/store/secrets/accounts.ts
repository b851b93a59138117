import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import { ConflictError, ForbiddenError, NotFoundError, OffstageError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Account } from "../../domain/people/account.ts";
import {
  boundedProblems,
  connectionStateOf,
  type ConnectionCheck,
  type ConnectionProblem,
} from "../../domain/repositories/connection.ts";
import { isoTime, listRows } from "../cursor.ts";
import { healthOf } from "./connection-rows.ts";
import { sealing } from "./rotation.ts";
import type { Sealed, Vault } from "./vault.ts";

/** Whose an account is. Nobody else sees it or changes it, whatever their role. */
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

/** The account with the id. @throws NotFoundError if there is none */
function only(rows: readonly AccountRow[], id: string): Account {
  if (rows[0] === undefined) throw new NotFoundError(`account ${id} was not found`);
  return shown(rows[0]);
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
    if (known.rows.length > 0) return only(known.rows, id);
    await requireRoom(transaction, owner);
    const { sealed, masterKey } = await vault.seal(id, token);
    const { rows } = await transaction
      .query<AccountRow>(
        `insert into forge_account (id, organization_id, user_id, kind, web_url, api_url, name, username, sealed, master_key,
           state, problems)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning ${columns}`,
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
          ...healthOf(check),
        ],
      )
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        throw new ConflictError(`webUrl: you have an account for ${webUrl} already: replace its token or delete it`);
      });
    return only(rows, id);
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
  return only(rows, id);
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
      `update forge_account set sealed = $4, master_key = $5, name = $6, username = $7, state = $8, problems = $9,
         checked_at = now(), updated_at = now()
       where id = $1 and organization_id = $2 and user_id = $3`,
      [id, organizationId, userId, sealed, masterKey, given.name, given.username, ...healthOf(given.check)],
    );
    if (replaced.rowCount === 1)
      await transaction.query("delete from forge_account_refusal where account_id = $1", [id]);
    const { rows } = await transaction.query<AccountRow>(
      `select ${columns} from forge_account where id = $1 and organization_id = $2 and user_id = $3`,
      [id, organizationId, userId],
    );
    return only(rows, id);
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
  return only(rows, id);
}

/** An account with its token. Only where forges are called may this be read. */
export interface OpenedForgeAccount extends Pick<Account, "id" | "kind" | "webUrl" | "apiUrl" | "name"> {
  readonly username: string | null;
  /** Changes if the token does. */
  readonly revision: string;
  /** An error: it can't be decrypted. */
  readonly token: string | OffstageError;
}

interface SealedAccount extends Omit<OpenedForgeAccount, "token">, Sealed {}

const sealedColumns = `forge_account.id, forge_account.kind, forge_account.web_url as "webUrl", forge_account.api_url as "apiUrl",
  forge_account.name, forge_account.username, forge_account.sealed, forge_account.master_key as "masterKey",
  md5(forge_account.sealed) as revision`;

async function opened<Row extends SealedAccount>(
  vault: Vault,
  row: Row,
): Promise<Omit<Row, keyof Sealed> & OpenedForgeAccount> {
  const { sealed, masterKey, ...account } = row;
  try {
    return { ...account, token: await vault.open(row.id, { sealed, masterKey }) };
  } catch (error) {
    if (!(error instanceof OffstageError)) throw error;
    return { ...account, token: error };
  }
}

/** One account with its token. @throws NotFoundError if the person has no such account */
export async function openAccount(
  database: Database,
  vault: Vault,
  { organizationId, userId }: AccountOwner,
  id: string,
): Promise<OpenedForgeAccount> {
  const { rows } = await database.pool.query<SealedAccount>(
    `select ${sealedColumns} from forge_account where id = $1 and organization_id = $2 and user_id = $3`,
    [id, organizationId, userId],
  );
  if (rows[0] === undefined) throw new NotFoundError(`account ${id} was not found`);
  return opened(vault, rows[0]);
}

/**
 * Records what a check found, after which the account is tried again everywhere if its token is good.
 * @param revision of the token that was checked: if it was replaced meanwhile, the finding is about the old one, and dropped
 */
export function saveAccountHealth(
  database: Database,
  { id, revision }: Pick<OpenedForgeAccount, "id" | "revision">,
  check: ConnectionCheck,
): Promise<void> {
  return database.transaction(async (transaction) => {
    const { rowCount } = await transaction.query(
      `update forge_account set state = $3, problems = $4, checked_at = now(), name = coalesce($5, name)
       where id = $1 and md5(sealed) = $2`,
      [id, revision, ...healthOf(check), check.account],
    );
    if (rowCount === 1 && connectionStateOf(check.problems) !== "broken") {
      await transaction.query("delete from forge_account_refusal where account_id = $1", [id]);
    }
  });
}

/** An account of the person who asked for a session. */
export interface RequesterAccount extends OpenedForgeAccount {
  readonly user: { readonly id: string; readonly name: string };
  /** Why it is not used; null: nothing is known against it. */
  readonly refused: string | null;
}

/**
 * The accounts of the person who asked for a session, unless they are disabled by now.
 * @param repositoryId the repository on which one is to be used
 */
export async function openAccountsOfRequester(
  database: Database,
  vault: Vault,
  { organizationId, sessionId }: { readonly organizationId: string; readonly sessionId: string },
  repositoryId: string,
): Promise<RequesterAccount[]> {
  const { rows } = await database.pool.query<SealedAccount & Pick<RequesterAccount, "user" | "refused">>(
    `select ${sealedColumns}, json_build_object('id', person.id, 'name', person.name) as user,
       case when forge_account.state = 'broken' then coalesce(forge_account.problems -> 0 ->> 'why', 'It does not work.')
         else refusal.words end as refused
     from session join user_account person on person.id = session.requested_by and person.disabled_at is null
       join forge_account on forge_account.user_id = person.id and forge_account.organization_id = session.organization_id
       left join forge_account_refusal refusal on refusal.account_id = forge_account.id and refusal.repository_id = $3
     where session.id = $1 and session.organization_id = $2`,
    [sessionId, organizationId, repositoryId],
  );
  return Promise.all(rows.map((row) => opened(vault, row)));
}

/**
 * Records that a forge refused an account: it is not used any more, at all or on one repository.
 * @param revision of the token that was refused: another one is not held responsible
 * @param refusal.repositoryId null: the forge does not take the token for anything
 */
export async function noteAccountRefusal(
  database: Database,
  { id, revision }: Pick<OpenedForgeAccount, "id" | "revision">,
  { words, repositoryId }: { readonly words: string; readonly repositoryId: string | null },
): Promise<void> {
  const storable = words.replaceAll("\0", "").toWellFormed().slice(0, 1_000);
  if (repositoryId !== null) {
    await database.pool.query(
      `insert into forge_account_refusal (account_id, repository_id, words)
       select forge_account.id, repository.id, $4 from forge_account, repository
       where forge_account.id = $1 and md5(sealed) = $2 and repository.id = $3
       for key share
       on conflict (account_id, repository_id) do update set words = excluded.words, refused_at = now()`,
      [id, revision, repositoryId, storable],
    );
    return;
  }
  const problem: ConnectionProblem = {
    missing: "a valid token",
    why: `The forge refused it when a pull request was to be opened: ${storable}.`,
    remedy: "Make a new token and replace it.",
    essential: true,
  };
  await database.pool.query(
    `update forge_account set state = 'broken', problems = $3, checked_at = now() where id = $1 and md5(sealed) = $2`,
    [id, revision, JSON.stringify(boundedProblems([problem]))],
  );
}
