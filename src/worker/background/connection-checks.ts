import type { Database } from "../../database/database.ts";
import { connectionStateOf, type ConnectionCheck } from "../../domain/repositories/connection.ts";
import type { ForgeConnection } from "../../forges/connections/organization-forges.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import {
  claimDueConnections,
  saveConnectionHealth,
  type OpenedConnection,
} from "../../store/secrets/opened-connections.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import { checkDue, createDueChecks, type DueChecks } from "./due-checks.ts";

/** What the checks of connections need. */
export interface ConnectionCheckOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly check: (connection: ForgeConnection, signal: AbortSignal) => Promise<ConnectionCheck>;
}

/** Checks the credentials of connections about once an hour each, and soon after a forge refused one. Any number of workers may. */
export function createConnectionChecks(options: ConnectionCheckOptions): Service {
  return createDueChecks(connectionChecks(options));
}

/**
 * Checks the connections that are due, at most ten.
 * @param stopping ends the checks under way: their connections are due again in five minutes
 * @returns how many were due
 */
export function checkDueConnections(options: ConnectionCheckOptions, stopping: AbortSignal): Promise<number> {
  return checkDue(connectionChecks(options), stopping);
}

function connectionChecks({ database, vault, logger, check }: ConnectionCheckOptions): DueChecks<OpenedConnection> {
  return {
    claim: (limit) => claimDueConnections(database, vault, limit),
    async check(connection, stopping) {
      const { id: connectionId, organizationId } = connection;
      const found = await check(connection, stopping);
      await saveConnectionHealth(database, connection, found);
      if (connectionStateOf(found.problems) === "broken") {
        logger.warn({ connectionId, organizationId }, "a connection of a forge is broken");
      }
    },
    checkFailed: (error, { id: connectionId }) =>
      logger.warn({ err: error, connectionId }, "could not check a connection of a forge"),
    claimFailed: (error) => logger.warn({ err: error }, "could not check connections of forges; will retry"),
  };
}
