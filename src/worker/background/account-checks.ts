import type { Database } from "../../database/database.ts";
import { connectionStateOf, type ConnectionCheck } from "../../domain/repositories/connection.ts";
import type { AccountPlace } from "../../forges/account-place.ts";
import { isAboutToken } from "../../forges/check-account.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { claimDueAccounts, saveAccountFinding, type DueAccount } from "../../store/secrets/opened-accounts.ts";
import type { Vault } from "../../store/secrets/vault.ts";

const everyMs = 60_000;
/** Accounts of one round: at most so many requests begin at once, of which each is over in half a minute. */
const batch = 10;

/** What the checks of people's accounts need. */
export interface AccountCheckOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly accounts: {
    /** Where an account at an address belongs now; a text: nowhere, and why. */
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
  return createPeriodic({
    round: async (stopping) => {
      while (!stopping.aborted && (await checkDueAccounts(options, stopping)) === batch);
    },
    everyMs,
    firstAfterMs: everyMs / 2,
    onFailure: (error) => options.logger.warn({ err: error }, "could not check accounts at forges; will retry"),
  });
}

/**
 * Checks the accounts that are due, at most ten.
 * @param stopping ends the checks under way: their accounts are due again in ten minutes
 * @returns how many were due
 */
export async function checkDueAccounts(options: AccountCheckOptions, stopping: AbortSignal): Promise<number> {
  const { database, vault, logger } = options;
  const due = await claimDueAccounts(database, vault, batch);
  await Promise.all(
    due.map(async (account) => {
      const { id: accountId, organizationId } = account;
      try {
        const found = await checkOne(options, account, stopping);
        // An account whose forge is away is not broken by that: it would not be used when the forge is back.
        if (found === null || !isAboutToken(found)) return;
        await saveAccountFinding(database, account, found);
        if (connectionStateOf(found.problems) === "broken") {
          logger.warn({ accountId, organizationId }, "a person's account at a forge is broken");
        }
      } catch (error) {
        if (!stopping.aborted) logger.warn({ err: error, accountId }, "could not check a person's account at a forge");
      }
    }),
  );
  return due.length;
}

/** @returns null if the token goes nowhere: it can't be opened, or its forge's API is not where it was checked */
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
