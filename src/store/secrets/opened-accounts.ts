import type { Database, Queryable } from "../../database/database.ts";
import { OffstageError } from "../../domain/errors/errors.ts";
import type { Account } from "../../domain/people/account.ts";
import {
  boundedProblems,
  connectionStateOf,
  type ConnectionCheck,
  type ConnectionProblem,
} from "../../domain/repositories/connection.ts";
import { healthOf, untilNextCheck } from "./connection-rows.ts";
import type { Sealed, Vault } from "./vault.ts";
import type { AccountOwner } from "./accounts.ts";
import { one } from "../one-row.ts";

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
  return opened(vault, one(rows, "account", id));
}

/**
 * Records what a check found that its person asked for, after which the account is tried again everywhere if its token is good.
 * @param account with the revision of the token that was checked: if it was replaced meanwhile, the finding is about the old one, and
 *   dropped
 */
export function saveAccountHealth(database: Database, account: CheckedAccount, check: ConnectionCheck): Promise<void> {
  return database.transaction(async (transaction) => {
    const isSaved = await saveFinding(transaction, account, check);
    if (!isSaved || connectionStateOf(check.problems) === "broken") return;
    await transaction.query("delete from forge_account_refusal where account_id = $1", [account.id]);
  });
}

/**
 * Records what a worker's check found. If the account was refused it is not tried again: that is for its person to say.
 * @param account with the revision of the token that was checked: if it was replaced meanwhile, the finding is about the old one, and
 *   dropped
 */
export async function saveAccountFinding(
  database: Database,
  account: CheckedAccount,
  check: ConnectionCheck,
): Promise<void> {
  await saveFinding(database.pool, account, check);
}

/** An account whose token was checked. */
type CheckedAccount = Pick<OpenedForgeAccount, "id" | "revision">;

async function saveFinding(
  database: Queryable,
  { id, revision }: CheckedAccount,
  check: ConnectionCheck,
): Promise<boolean> {
  const { rowCount } = await database.query(
    `update forge_account set state = $3, problems = $4, checked_at = now(), name = coalesce($5, name),
       forge_user_id = coalesce($6, forge_user_id), next_check_at = now() + ${untilNextCheck}
     where id = $1 and md5(sealed) = $2`,
    [id, revision, ...healthOf(check), check.account, check.accountId ?? null],
  );
  return rowCount === 1;
}

/** An account that a worker is to check. */
export interface DueAccount extends OpenedForgeAccount {
  readonly organizationId: string;
}

/**
 * Claims accounts whose check is due, of all people who are not disabled, for ten minutes; if no result is recorded by
 * then, an account is due again.
 */
export async function claimDueAccounts(database: Database, vault: Vault, limit: number): Promise<DueAccount[]> {
  const { rows } = await database.pool.query<SealedAccount & Pick<DueAccount, "organizationId">>(
    `update forge_account set next_check_at = now() + interval '10 minutes'
     where id in (select forge_account.id from forge_account
         join user_account person on person.id = forge_account.user_id and person.disabled_at is null
       where next_check_at <= now()
       order by next_check_at limit $1 for update of forge_account skip locked)
     returning ${sealedColumns}, forge_account.organization_id as "organizationId"`,
    [limit],
  );
  return Promise.all(rows.map((row) => opened(vault, row)));
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
