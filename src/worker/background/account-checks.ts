import type { Database } from "../../database/database.ts";
import { connectionStateOf, type ConnectionCheck } from "../../domain/repositories/connection.ts";
import type { AccountPlace } from "../../forges/connections/account-place.ts";
import { isAboutToken } from "../../forges/connections/check-account.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { claimDueAccounts, saveAccountFinding, type DueAccount } from "../../store/secrets/opened-accounts.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import { checkDue, createDueChecks, type DueChecks } from "./due-checks.ts";

/** What the checks of people's accounts need. */
export interface AccountCheckOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly accounts: {
    /** Where an account at an address belongs now; a text if nowhere: the reason. */
    readonly placeOf: (organizationId: string, webUrl: string) => Promise<AccountPlace | string>;
    readonly check: (
      place: AccountPlace,
      credential: { readonly token: string; readonly username: string | undefined },
      signal: AbortSignal,
    ) => Promise<ConnectionCheck>;
  };
}

/** Checks people's own accounts at forges about once an hour each. Any number of workers may. */
export function createAccountChecks(options: AccountCheckOptions): Service {
  return createDueChecks(accountChecks(options));
}

/**
 * Checks the accounts that are due, at most ten.
 * @param stopping ends the checks under way: their accounts are due again in ten minutes
 * @returns how many were due
 */
export function checkDueAccounts(options: AccountCheckOptions, stopping: AbortSignal): Promise<number> {
  return checkDue(accountChecks(options), stopping);
}

function accountChecks(options: AccountCheckOptions): DueChecks<DueAccount> {
  const { database, vault, logger } = options;
  return {
    claim: (limit) => claimDueAccounts(database, vault, limit),
    async check(account, stopping) {
      const { id: accountId, organizationId } = account;
      const found = await checkOne(options, account, stopping);
      // An account whose forge is away is not broken by that: it would not be used when the forge is back.
      if (found === null || !isAboutToken(found)) return;
      await saveAccountFinding(database, account, found);
      if (connectionStateOf(found.problems) === "broken") {
        logger.warn({ accountId, organizationId }, "a person's account at a forge is broken");
      }
    },
    checkFailed: (error, { id: accountId }) =>
      logger.warn({ err: error, accountId }, "could not check a person's account at a forge"),
    claimFailed: (error) => logger.warn({ err: error }, "could not check accounts at forges; will retry"),
  };
}

/**
 * @returns null if the token is not sent: it can't be decrypted, or its forge's API has another address than when it
 * was checked
 */
async function checkOne(
  { accounts }: AccountCheckOptions,
  account: DueAccount,
  stopping: AbortSignal,
): Promise<ConnectionCheck | null> {
  const { token, username } = account;
  if (token instanceof Error) return null;
  const place = await accounts.placeOf(account.organizationId, account.webUrl);
  if (typeof place === "string" || place.kind !== account.kind || place.apiUrl !== account.apiUrl) return null;
  return accounts.check(place, { token, username: username ?? undefined }, stopping);
}
