import type { ForgeAccounts } from "../api/http/context.ts";
import { accountPlaceOf, type AccountPlace, type KnownForge } from "../forges/connections/account-place.ts";
import { checkAccount } from "../forges/connections/check-account.ts";
import { settingsOf } from "../forges/connections/organization-forges.ts";
import { connectionAddresses } from "../store/secrets/opened-connections.ts";
import type { AccountCheckOptions } from "../worker/background/account-checks.ts";
import type { Dependencies } from "./dependencies.ts";

/** The API's and the workers' functions for people's own accounts at forges. */
export function forgeAccounts({
  config,
  database,
  forgeReach,
}: Pick<Dependencies, "config" | "database" | "forgeReach">): ForgeAccounts & AccountCheckOptions["accounts"] {
  const isOperators = ({ kind, apiUrl }: { readonly kind: string; readonly apiUrl: string }): boolean =>
    config.forges.some((each) => each.kind === kind && "apiUrl" in each && each.apiUrl === apiUrl);
  return {
    async placeOf(organizationId, webUrl) {
      const connections = await connectionAddresses(database, organizationId);
      const known: KnownForge[] = [
        ...connections.map((connection) => ({ settings: settingsOf(connection, null), isOwn: true })),
        ...config.forges.map((settings) => ({ settings, isOwn: false })),
      ];
      return accountPlaceOf(webUrl, known);
    },
    check: (
      place: AccountPlace,
      credential: Parameters<ForgeAccounts["check"]>[1],
      signal: AbortSignal = new AbortController().signal,
    ) => {
      // The operator named these, and they are reached as they are by sessions.
      const reach = isOperators(place) ? { fetch, mayBePrivate: () => true } : forgeReach;
      return checkAccount(place, credential, { reach, signal });
    },
  };
}
