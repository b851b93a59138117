import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import type { Config } from "../config/config.ts";
import { openDatabase, type Database } from "../database/database.ts";
import { isInitialized } from "../database/embedded/program.ts";
import { NotFoundError } from "../domain/errors/errors.ts";
import type { NewEvent } from "../domain/sessions/event.ts";
import { createMetrics } from "../metrics/metrics.ts";
import { createLogger } from "../observability.ts";
import { addressFile } from "../server/data-folder.ts";
import { createAttemptServices } from "../server/attempt-services.ts";
import { createAgentRegistry } from "../server/agent-registry.ts";
import { createForgeReach, openForges } from "../server/open-forges.ts";
import { createSandbox } from "../server/create-sandbox.ts";
import { openVault, recordingsDirectory } from "../server/open-stores.ts";
import { findDefaultOrganization, findOrganization } from "../store/people/organizations.ts";
import { appendAudit } from "../store/requests/audit.ts";
import { noTraces } from "../traces.ts";
import { replaySession, type ReplayResult } from "../worker/replay.ts";

// What commands need to work while a server may be running.

/** The address of the server that was last started on this data folder, or the configured one if none was. */
export async function lastAddress(config: Config): Promise<string> {
  const bySettings = config.publicUrl ?? `http://${config.host}:${config.port}`;
  const written = await readFile(addressFile(config), "utf8").catch(() => "");
  return written.trim() || bySettings;
}

/**
 * Opens the database for one command, while a server may be running, and closes it afterwards.
 * @param name of the organization that the command is about; omitted: the server's own
 * @throws NotFoundError if no server was ever started on it, or there is no organization of the name
 */
export async function withStore<T>(
  config: Config,
  work: (database: Database, organizationId: string) => Promise<T>,
  name?: string,
): Promise<T> {
  await requireDatabase(config);
  const database = await attachDatabase(config);
  try {
    const named = name === undefined ? await findDefaultOrganization(database) : await findOrganization(database, name);
    if (named === null) throw new NotFoundError(`there is no organization ${name}`);
    return await work(database, named);
  } finally {
    await database.close();
  }
}

/**
 * Checks that the data folder has a database: if not, the folder is probably the wrong one.
 * @throws NotFoundError
 */
export async function requireDatabase({ databaseUrl, databaseDirectory, data }: Config): Promise<void> {
  if (databaseUrl !== null || (await isInitialized(databaseDirectory))) return;
  throw new NotFoundError(`there is no database in ${data}: name the folder of the service's data with --data`);
}

/** Adds an entry to the audit log for a command on the server's machine. */
export function auditCommand(
  database: Database,
  organizationId: string,
  action: string,
  target: string | null,
): Promise<void> {
  const entry = { organizationId, actor: "command", keyId: null, userId: null, action, target, status: 200 } as const;
  return appendAudit(database, [{ ...entry, address: hostname(), requestId: null }]);
}

/** Opens the database for a short command, whether or not a server uses it. */
export function attachDatabase(config: Config): Promise<Database> {
  const { databaseUrl: url, databaseDirectory: directory } = config;
  return openDatabase({ url, directory, logger: createLogger("error"), attach: true });
}

/**
 * Runs a recorded session again, while a server may be running.
 * @throws NotFoundError
 */
export function replayRecordedSession(
  config: Config,
  sessionId: string,
  options: { readonly onEvent: (event: NewEvent) => void; readonly signal: AbortSignal },
): Promise<ReplayResult> {
  return withStore(config, (database, organizationId) => {
    const logger = createLogger("error");
    const vault = openVault(config);
    const services = createAttemptServices(config, {
      database,
      logger,
      metrics: createMetrics(),
      traces: noTraces,
      vault,
      sandbox: createSandbox(config),
      providers: createAgentRegistry(config),
      forges: openForges(config, { database, vault, logger, reach: createForgeReach(config) }),
      publicUrl: () => config.publicUrl ?? "",
      workerId: "replay",
    });
    const recorded = { ...services, recordingsDirectory: recordingsDirectory(config) };
    return replaySession(recorded, { organizationId, id: sessionId }, options);
  });
}
