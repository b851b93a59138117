import type { ForgeConnections } from "../api/http/context.ts";
import { isAddressProblem, parseRepositoryUrl } from "../domain/repositories/repository.ts";
import { checkConnection } from "../forges/connections/check-connection.ts";
import { createForges } from "../forges/forges.ts";
import { appManifest, convertManifest } from "../forges/github/app-manifest.ts";
import { withReach } from "../forges/http/reach.ts";
import { settleRepositoryKeys } from "../store/repositories/repository-keys.ts";
import { organizationsWithConnections } from "../store/secrets/opened-connections.ts";
import type { Dependencies } from "./dependencies.ts";

/** Longest time in which a forge hands an App over, in ms. */
const conversionLimitMs = 30_000;

type Parts = Pick<Dependencies, "config" | "database" | "forges" | "forgeReach">;

/** The API's functions for connections of forges. */
export function forgeConnections(parts: Parts): ForgeConnections {
  const { config, forges, forgeReach: reach } = parts;
  return {
    check: (connection, credential) =>
      checkConnection(connection, credential, {
        reach,
        configured: config.forges,
        signal: new AbortController().signal,
      }),
    appManifest,
    convertAppManifest: ({ apiUrl }, code) =>
      withReach({ fetch: reach.fetch, refused: () => undefined }, () =>
        convertManifest(apiUrl ?? "", code, AbortSignal.timeout(conversionLimitMs)),
      ),
    async changed(organizationId) {
      forges.forget(organizationId);
      await settleKeys(parts, organizationId);
    },
  };
}

/**
 * Gives repositories the keys that follow from the forges of their organization: whether capitals count depends on the forge.
 * @param organizationId the one whose connections have changed; omitted: all organizations
 * @returns how many were changed
 */
export async function settleKeys(
  { config, database, forges }: Pick<Parts, "config" | "database" | "forges">,
  organizationId: string | null = null,
): Promise<number> {
  const operators = createForges(config.forges);
  const connected = new Set(await organizationsWithConnections(database));
  const keyOf = async (url: string, of: string): Promise<string | null> => {
    const address = parseRepositoryUrl(url);
    if (isAddressProblem(address)) return null;
    return (connected.has(of) ? await forges.of(of) : operators).keyOf(address);
  };
  return settleRepositoryKeys(database, keyOf, organizationId);
}
