import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import { createMetrics, type Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import { createLoginLink } from "../store/people/logins.ts";
import { bootstrap, type Bootstrapped } from "../store/people/organizations.ts";
import { readQueueStats } from "../store/queue/stats.ts";
import { connectionsChannel } from "../store/secrets/forge-connections.ts";
import { createTemplates } from "../templates/templates.ts";
import type { Traces } from "../traces.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Shutdown } from "./shutdown.ts";
import { createForgeReach, openForges } from "./open-forges.ts";
import { createAgentRegistry } from "./agent-registry.ts";
import { createSandbox } from "./create-sandbox.ts";
import { openVault } from "./open-stores.ts";

/** Milliseconds for which the sign-in link of the first start is valid. */
const firstLoginLinkMs = 24 * 60 * 60 * 1_000;

/** The shared dependencies of a process's API and worker, and the existing or created organization. */
export interface Assembled {
  readonly dependencies: Dependencies;
  /** Null in a process that only works. */
  readonly organization: Bootstrapped | null;
}

/** How a new installation is entered; see `Offstage.first`. */
export interface FirstSignIn {
  readonly adminKey: string | null;
  readonly loginLink: string;
}

/** Makes what the API and the worker of a process share. @param isWorker whether the process has no API */
export async function assemble(
  { config, logger, traces, isWorker }: { config: Config; logger: Logger; traces: Traces; isWorker: boolean },
  database: Database,
  shutdown: Shutdown,
): Promise<Assembled> {
  // A worker that starts first does not create the organization: the API node does, because it prints the admin key
  // and has the sign-in page.
  const organization = isWorker ? null : await bootstrap(database, { adminKey: config.adminKey });
  const vault = openVault(config);
  const forgeReach = createForgeReach(config);
  const forges = openForges(config, { database, vault, logger, reach: forgeReach });
  const changes = await database.listen(connectionsChannel, (organizationId) => forges.forget(organizationId));
  shutdown.add(() => changes.close());
  const templates = createTemplates();
  shutdown.add(() => templates.close());
  const dependencies: Dependencies = {
    config,
    logger,
    metrics: watchedMetrics(database, logger),
    traces,
    database,
    vault,
    sandbox: createSandbox(config, logger),
    providers: createAgentRegistry(config),
    forges,
    forgeReach,
    templates,
    ready: async () => (await database.pool.query("select 1")).rowCount === 1,
  };
  return { dependencies, organization };
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

/** Makes the link that signs in, if the organization is new. */
export async function firstSignIn(
  database: Database,
  organization: Bootstrapped | null,
  url: string,
): Promise<FirstSignIn | null> {
  if (organization?.created !== true) return null;
  const token = await createLoginLink(database, organization.organizationId, {
    scopes: ["admin"],
    ttlMs: firstLoginLinkMs,
  });
  return { adminKey: organization.adminKey, loginLink: `${url}/sign-in#${token}` };
}
