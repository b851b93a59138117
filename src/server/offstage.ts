import type { Config } from "../config/config.ts";
import { openDatabase, type Database } from "../database/database.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import { createLoginLink } from "../store/people/logins.ts";
import { bootstrap } from "../store/people/organizations.ts";
import { readQueueStats } from "../store/queue/stats.ts";
import { connectionsChannel } from "../store/secrets/forge-connections.ts";
import { createTemplates } from "../templates/templates.ts";
import { createTraces } from "../traces.ts";
import { createStatusServer } from "../worker/background/status-server.ts";
import { closeDataFolder } from "./data-folder.ts";
import type { Dependencies } from "./dependencies.ts";
import { listenError } from "./listen-error.ts";
import { createShutdown, type Shutdown } from "./shutdown.ts";
import { startApiNode } from "./start-api-node.ts";
import { startWorkerNode } from "./start-worker-node.ts";
import { createForgeReach, createRegistry, createSandbox, openForges, openVault, reachOutside } from "./wiring.ts";

/** Milliseconds for which the sign-in link of the first start is valid. */
const firstLoginLinkMs = 24 * 60 * 60 * 1_000;

/** A running server. */
export interface Offstage {
  /** The server's address, without a trailing slash. */
  readonly url: string;
  readonly database: Database;
  /**
   * Only at the first start: the admin key (null if the operator set one) and the link that signs in. Null at later
   * starts.
   */
  readonly first: { readonly adminKey: string | null; readonly loginLink: string } | null;
  /** Waits for running requests, returns running sessions to the queue and closes the database. Can be called twice. */
  stop(): Promise<void>;
}

/** What a process runs: everything, or only the API or a worker as a node with a shared database. */
export type ServerRole = "all" | "api" | "worker";

/**
 * Creates the parts that a role needs and starts them: API and web app, worker, and by default the database.
 * @throws InvalidInputError if a node lacks a setting that all nodes must share
 */
export async function startOffstage(config: Config, logger: Logger, role: ServerRole = "all"): Promise<Offstage> {
  requireShared(config, role);
  await closeDataFolder(config);
  const shutdown = createShutdown();
  try {
    return await start(config, logger, role, shutdown);
  } catch (error) {
    // The error of the start is reported, and one of stopping only logged.
    await shutdown
      .run()
      .catch((failure: unknown) => logger.warn({ err: failure }, "could not stop everything that had started"));
    throw error;
  }
}

/** Nodes are connected only by the database: what is in a file of one node, the others don't have. */
function requireShared({ databaseUrl, masterKey, publicUrl }: Config, role: ServerRole): void {
  if (role === "all") return;
  const missing = [
    databaseUrl === null ? "DATABASE_URL: must be set, to the database that all nodes share" : null,
    masterKey === null ? "OFFSTAGE_MASTER_KEY: must be set, to the same value on every node" : null,
    publicUrl === null ? "OFFSTAGE_PUBLIC_URL: must be set, to the address at which people reach the API nodes" : null,
  ].find((problem) => problem !== null);
  if (missing !== undefined) throw new InvalidInputError(missing);
}

async function start(config: Config, logger: Logger, role: ServerRole, stops: Shutdown): Promise<Offstage> {
  stops.add(reachOutside(config));
  const traces = await createTraces(config.traces, (error) => logger.warn({ err: error }, "could not send spans"));
  stops.add(() => traces.close());
  const database = await openDatabase({ url: config.databaseUrl, directory: config.databaseDirectory, logger });
  stops.add(() => database.close());
  // A worker that starts first does not create the organization: the API node does, because it prints the admin key
  // and has the sign-in page.
  const organization = role === "worker" ? null : await bootstrap(database, { adminKey: config.adminKey });
  const vault = openVault(config);
  const forgeReach = createForgeReach(config);
  const forges = openForges(config, { database, vault, logger, reach: forgeReach });
  const changes = await database.listen(connectionsChannel, (organizationId) => forges.forget(organizationId));
  stops.add(() => changes.close());
  const templates = createTemplates();
  stops.add(() => templates.close());
  const parts: Dependencies = {
    config,
    logger,
    metrics: watchedMetrics(database, logger),
    traces,
    database,
    vault,
    sandbox: createSandbox(config, logger),
    providers: createRegistry(config),
    forges,
    forgeReach,
    templates,
    ready: async () => (await database.pool.query("select 1")).rowCount === 1,
  };
  const url =
    role === "worker" ? (config.publicUrl ?? "") : await startApiNode(parts, stops, { alone: role === "all" });
  if (role !== "api") await startWorkerNode(parts, url, stops);
  if (role === "worker" && config.metricsPort !== null) {
    const { host, metricsPort: port, metricsToken: token } = config;
    const { metrics, ready } = parts;
    const status = createStatusServer({ host, port, token, metrics, logger, ready, publicUrl: () => null });
    await stops.start(status).catch((error: unknown) => {
      throw listenError(error, { host, port }, "OFFSTAGE_METRICS_PORT");
    });
    logger.info({ port: status.port }, "serving health and metrics over HTTP");
  }
  let stopped: Promise<void> | null = null;
  return {
    url,
    database,
    first: organization === null ? null : await firstSignIn(database, organization, url),
    stop: () => (stopped ??= stops.run()),
  };
}

/** Metrics of this process, and those that it reads from the database about all nodes. */
function watchedMetrics(database: Database, logger: Logger): Metrics {
  const metrics = createMetrics();
  metrics.watchProcess();
  metrics.watchPool(() => {
    const { totalCount: total, idleCount: idle, waitingCount: waiting } = database.pool;
    return { total, idle, waiting };
  });
  metrics.watchQueues(
    () => readQueueStats(database),
    (error) => logger.warn({ err: error }, "could not count the queues for the metrics"),
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
