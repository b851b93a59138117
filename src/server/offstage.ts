import type { Config } from "../config/config.ts";
import { openDatabase, type Database } from "../database/database.ts";
import { InvalidInputError } from "../domain/errors.ts";
import { createForges } from "../forges/forges.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import { createLoginLink } from "../store/people/logins.ts";
import { bootstrap } from "../store/people/organizations.ts";
import { readFleetState } from "../store/queue/fleet.ts";
import { createTemplates } from "../templates/templates.ts";
import { createTraces } from "../traces.ts";
import { startStatusServer } from "../worker/background/status-server.ts";
import { closeDataFolder } from "./data-folder.ts";
import { listenError } from "./listen-error.ts";
import type { Parts } from "./parts.ts";
import { startApi } from "./start-api.ts";
import { startWork } from "./start-work.ts";
import { createStops, type Stops } from "./stops.ts";
import { createRegistry, createSandbox, openVault } from "./wiring.ts";

/** How long the link that the first start prints signs a browser in. */
const firstLoginLinkMs = 24 * 60 * 60 * 1_000;

export interface Offstage {
  /** Where the server answers, without a trailing slash. */
  readonly url: string;
  readonly database: Database;
  /** Only on the very first start: the admin key (null where the operator gave it) and the link that signs in. */
  readonly first: { readonly adminKey: string | null; readonly loginLink: string } | null;
  /** Lets requests end, hands running sessions back, closes the database. Safe to call twice. */
  stop(): Promise<void>;
}

/** What one process does: everything, or one side of a fleet on a database of its own. */
export type ServerRole = "all" | "api" | "worker";

/**
 * Wires the parts that a role has and starts them: API and web app, worker, and by default the database.
 * @throws InvalidInputError where a part of a fleet lacks what its nodes share
 */
export async function startOffstage(config: Config, logger: Logger, role: ServerRole = "all"): Promise<Offstage> {
  requireShared(config, role);
  await closeDataFolder(config);
  const stops = createStops();
  try {
    return await start(config, logger, role, stops);
  } catch (error) {
    // Why it did not start is what counts.
    await stops.run().catch((failure: unknown) => logger.warn({ err: failure }, "could not stop all that had started"));
    throw error;
  }
}

/** Nodes of a fleet know each other by the database alone; what is in a file of one of them the others don't have. */
function requireShared({ databaseUrl, masterKey, publicUrl }: Config, role: ServerRole): void {
  if (role === "all") return;
  const missing = [
    databaseUrl === null ? "DATABASE_URL: must be set, to the database that all nodes share" : null,
    masterKey === null ? "OFFSTAGE_MASTER_KEY: must be set, to the same value on every node" : null,
    publicUrl === null ? "OFFSTAGE_PUBLIC_URL: must be set, to the address at which people reach the API nodes" : null,
  ].find((problem) => problem !== null);
  if (missing !== undefined) throw new InvalidInputError(missing);
}

async function start(config: Config, logger: Logger, role: ServerRole, stops: Stops): Promise<Offstage> {
  const traces = await createTraces(config.traces, (error) => logger.warn({ err: error }, "could not send spans"));
  stops.add(() => traces.close());
  const database = await openDatabase({ url: config.databaseUrl, directory: config.databaseDirectory, logger });
  stops.add(() => database.close());
  // Where a worker is up first, the organization waits for the API node, which prints its key and has a page to sign in to.
  const organization = role === "worker" ? null : await bootstrap(database, { adminKey: config.adminKey });
  const templates = createTemplates();
  stops.add(() => templates.close());
  const parts: Parts = {
    config,
    logger,
    metrics: watchedMetrics(database, logger),
    traces,
    database,
    vault: openVault(config),
    sandbox: createSandbox(config, logger),
    providers: createRegistry(config),
    forges: createForges(config.forges),
    templates,
    ready: async () => (await database.pool.query("select 1")).rowCount === 1,
  };
  const url = role === "worker" ? (config.publicUrl ?? "") : await startApi(parts, stops, { alone: role === "all" });
  if (role !== "api") await startWork(parts, url, stops);
  if (role === "worker" && config.metricsPort !== null) {
    const { host, metricsPort: port, metricsToken: token } = config;
    const { metrics, ready } = parts;
    const status = await startStatusServer({ host, port, token, metrics, logger, ready }).catch((error: unknown) => {
      throw listenError(error, { host, port }, "OFFSTAGE_METRICS_PORT");
    });
    stops.add(() => status.close());
    logger.info({ port: status.port }, "tells of itself over HTTP");
  }
  let stopped: Promise<void> | null = null;
  return {
    url,
    database,
    first: organization === null ? null : await firstSignIn(database, organization, url),
    stop: () => (stopped ??= stops.run()),
  };
}

/** This process's own, and what it knows of the others by the database. */
function watchedMetrics(database: Database, logger: Logger): Metrics {
  const metrics = createMetrics();
  metrics.watchProcess();
  metrics.watchPool(() => {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = database.pool;
    return { total, idle, waiting };
  });
  metrics.watchFleet(
    () => readFleetState(database),
    (error) => logger.warn({ err: error }, "could not count what waits, for the metrics"),
  );
  return metrics;
}

async function firstSignIn(
  database: Database,
  organization: Awaited<ReturnType<typeof bootstrap>>,
  url: string,
): Promise<Offstage["first"]> {
  if (!organization.created) return null;
  const token = await createLoginLink(database, organization.organizationId, {
    scopes: ["admin"],
    ttlMs: firstLoginLinkMs,
  });
  return { adminKey: organization.adminKey, loginLink: `${url}/sign-in#${token}` };
}
