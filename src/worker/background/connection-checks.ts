import type { Database } from "../../database/database.ts";
import { connectionStateOf, type ConnectionCheck } from "../../domain/repositories/connection.ts";
import type { ForgeConnection } from "../../forges/organization-forges.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { claimDueConnections, saveConnectionHealth } from "../../store/secrets/opened-connections.ts";
import type { Vault } from "../../store/secrets/vault.ts";

const everyMs = 60_000;
/** Connections of one round: at most so many requests begin at once, of which each is over in half a minute. */
const batch = 10;

/** What the checks of connections need. */
export interface ConnectionCheckOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly check: (connection: ForgeConnection, signal: AbortSignal) => Promise<ConnectionCheck>;
}

/** Checks the credentials of connections about once an hour each, and soon after a forge refused one. Any number of workers may. */
export function createConnectionChecks(options: ConnectionCheckOptions): Service {
  return createPeriodic({
    round: async (stopping) => {
      while (!stopping.aborted && (await checkDueConnections(options, stopping)) === batch);
    },
    everyMs,
    firstAfterMs: everyMs / 2,
    onFailure: (error) => options.logger.warn({ err: error }, "could not check connections of forges; will retry"),
  });
}

/**
 * Checks the connections that are due, at most ten.
 * @param stopping ends the checks under way: their connections are due again in five minutes
 * @returns how many were due
 */
export async function checkDueConnections(
  { database, vault, logger, check }: ConnectionCheckOptions,
  stopping: AbortSignal,
): Promise<number> {
  const due = await claimDueConnections(database, vault, batch);
  await Promise.all(
    due.map(async (connection) => {
      const { id: connectionId, organizationId } = connection;
      try {
        const found = await check(connection, stopping);
        const isBroken = connectionStateOf(found.problems) === "broken";
        await saveConnectionHealth(database, connection, found);
        if (isBroken) logger.warn({ connectionId, organizationId }, "a connection of a forge is broken");
      } catch (error) {
        if (!stopping.aborted) logger.warn({ err: error, connectionId }, "could not check a connection of a forge");
      }
    }),
  );
  return due.length;
}
