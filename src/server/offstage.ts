import type { Config } from "../config/config.ts";
import { openDatabase, type Database } from "../database/database.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import type { Logger } from "../observability.ts";
import { createTraces } from "../traces.ts";
import type { FirstSignIn } from "./assemble.ts";
import { closeDataFolder } from "./data-folder.ts";
import type { Dependencies } from "./dependencies.ts";
import { listenError } from "./listen-error.ts";
import { reachOutside } from "./reach-outside.ts";
import { createShutdown, type Shutdown } from "./shutdown.ts";

/** A running server. */
export interface Offstage {
  /** The server's address, without a trailing slash. */
  readonly url: string;
  readonly database: Database;
  /**
   * Only at the first start: the admin key (null if the operator set one) and the link that signs in. Null at later
   * starts.
   */
  readonly first: FirstSignIn | null;
  /** Waits for running requests, returns running sessions to the queue and closes the database. Can be called twice. */
  stop(): Promise<void>;
}

/** The role of a process: everything, or only the API or a worker as a node with a shared database. */
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

async function start(config: Config, logger: Logger, role: ServerRole, shutdown: Shutdown): Promise<Offstage> {
  shutdown.add(reachOutside(config));
  const traces = await createTraces(config.traces, (error) => logger.warn({ err: error }, "could not send spans"));
  shutdown.add(() => traces.close());
  const begun = Promise.withResolvers<void>();
  const opening = openDatabase({
    url: config.databaseUrl,
    directory: config.databaseDirectory,
    onProcess: begun.resolve,
    logger,
  });
  shutdown.add(async () => (await opening.catch(() => null))?.close());
  // The database starts while this process loads its own code. That keeps the process busy, so the database's own comes first.
  await Promise.race([begun.promise, opening]);
  const [database, { assemble, firstSignIn }, apiNode] = await Promise.all([
    opening,
    import("./assemble.ts"),
    role === "worker" ? null : import("./start-api-node.ts"),
  ]);
  const isWorker = role === "worker";
  const { dependencies, organization } = await assemble({ config, logger, traces, isWorker }, database, shutdown);
  const url =
    apiNode === null
      ? (config.publicUrl ?? "")
      : await apiNode.startApiNode(dependencies, shutdown, { alone: role === "all" });
  if (role !== "api") {
    const { startWorkerNode } = await import("./start-worker-node.ts");
    await startWorkerNode(dependencies, url, shutdown);
  }
  if (isWorker && config.metricsPort !== null) await startStatusServer(dependencies, config.metricsPort, shutdown);
  let stopped: Promise<void> | null = null;
  return {
    url,
    database,
    first: await firstSignIn(database, organization, url),
    stop: () => (stopped ??= shutdown.run()),
  };
}

async function startStatusServer(
  { config, logger, metrics, ready }: Dependencies,
  port: number,
  shutdown: Shutdown,
): Promise<void> {
  const { createStatusServer } = await import("../worker/background/status-server.ts");
  const { host, metricsToken: token } = config;
  const status = createStatusServer({ host, port, token, metrics, logger, ready, publicUrl: () => null });
  await shutdown.start(status).catch((error: unknown) => {
    throw listenError(error, { host, port }, "OFFSTAGE_METRICS_PORT");
  });
  logger.info({ port: status.port }, "serving health and metrics over HTTP");
}
