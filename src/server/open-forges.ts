import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import { createOrganizationForges, type OrganizationForges } from "../forges/connections/organization-forges.ts";
import { createGuardedFetch, type GuardedFetch } from "../gateway/egress/guarded-fetch.ts";
import type { Logger } from "../observability.ts";
import { allowedRepositories } from "../store/people/organizations.ts";
import { checkConnectionSoon, openConnections } from "../store/secrets/opened-connections.ts";
import type { Vault } from "../store/secrets/vault.ts";

/** How forges are reached that organizations name: the operator's own servers, and hosts of OFFSTAGE_FORGE_HOSTS, may be private. */
export function createForgeReach({ forges, forgeHosts, outbound }: Config): GuardedFetch {
  const named = forges.flatMap((forge) => [forge.webUrl, ...("apiUrl" in forge ? [forge.apiUrl] : [])]);
  return createGuardedFetch({
    privateHosts: forgeHosts,
    privateServers: named,
    setting: "OFFSTAGE_FORGE_HOSTS",
    proxies: outbound.proxies,
  });
}

/** Makes the forges of each organization: its connections, then the operator's. */
export function openForges(
  { forges: configured }: Config,
  {
    database,
    vault,
    logger,
    reach,
  }: {
    readonly database: Database;
    readonly vault: Vault;
    readonly logger: Logger;
    readonly reach: GuardedFetch;
  },
): OrganizationForges {
  return createOrganizationForges({
    configured,
    reach,
    load: (organizationId) => openConnections(database, vault, organizationId),
    usesConfigured: async (organizationId) => (await allowedRepositories(database, organizationId)).usesServerForges,
    refused: (id) =>
      void checkConnectionSoon(database, id).catch((error: unknown) =>
        logger.warn({ err: error, connectionId: id }, "could not ask for a connection's check"),
      ),
  });
}
