import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { fleetAgents, fleetDefaultAgent, listAgents } from "./agent-list.ts";
import type { Provider } from "./agents/harness.ts";
import { createApp } from "./api/app.ts";
import type { Config } from "./config/config.ts";
import { openDatabase, type Database } from "./database/database.ts";
import { hasRoom } from "./database/room.ts";
import type { NewEvent } from "./domain/event.ts";
import { checkInstructions, renderInstructions } from "./domain/template.ts";
import { InvalidInputError } from "./domain/errors.ts";
import { createForges, type Forges } from "./forges/forges.ts";
import { createMetrics, type Metrics } from "./metrics/metrics.ts";
import { createLogger, type Logger } from "./observability.ts";
import { appendAudit } from "./store/audit.ts";
import { readFleetState } from "./store/fleet.ts";
import { createIntake } from "./store/intake.ts";
import { createLoginLink } from "./store/logins.ts";
import { bootstrap, findDefaultOrganization } from "./store/organizations.ts";
import { listWorkers, removeWorker, reportWorker } from "./store/worker-nodes.ts";
import type { Vault } from "./store/vault.ts";
import type { Sandbox } from "./sandboxes/sandbox.ts";
import { createTraces, noTraces, type Traces } from "./traces.ts";
import { followPullRequests } from "./worker/follow-pull-requests.ts";
import { startRelay } from "./worker/relay.ts";
import { startHousekeeping } from "./worker/housekeeping.ts";
import { replaySession, type ReplayResult } from "./worker/replay.ts";
import { runJob } from "./worker/run-job.ts";
import { runSession } from "./worker/run-session.ts";
import { startStatusServer } from "./worker/status-server.ts";
import { startWorker } from "./worker/worker.ts";
import {
  chooseDefaultAgent,
  createRegistry,
  createRunDependencies,
  createSandbox,
  createSignInMethods,
  openVault,
  recordingsDirectory,
  socketDirectory,
  readWorkerId,
} from "./wiring.ts";

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
  await mkdir(config.data, { recursive: true });
  const stops: (() => Promise<void>)[] = [];
  const stopAll = async (): Promise<void> => {
    for (const stop of stops.splice(0).reverse()) await stop();
  };
  try {
    return await start(config, logger, role, stops, stopAll);
  } catch (error) {
    await stopAll();
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

/** What both sides of a process use. */
interface Parts {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly traces: Traces;
  readonly database: Database;
  readonly vault: Vault;
  readonly sandbox: Sandbox;
  readonly providers: readonly Provider[];
  readonly forges: Forges;
}

async function start(
  config: Config,
  logger: Logger,
  role: ServerRole,
  stops: (() => Promise<void>)[],
  stopAll: () => Promise<void>,
): Promise<Offstage> {
  const traces = await createTraces(config.traces, (error) => logger.warn({ err: error }, "could not send spans"));
  stops.push(() => traces.close());
  const database = await openDatabase({ url: config.databaseUrl, directory: config.databaseDirectory, logger });
  stops.push(() => database.close());
  const organization = await bootstrap(database, { adminKey: config.adminKey });
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
  };
  const url = role === "worker" ? (config.publicUrl ?? "") : await startApi(parts, role, stops);
  if (role !== "api") await startWork(parts, url, stops);
  if (role === "worker" && config.metricsPort !== null) {
    const { host, metricsPort: port, metricsToken: token } = config;
    const { metrics } = parts;
    const status = await startStatusServer({ host, port, token, metrics, logger, ready: () => answers(database) });
    stops.push(() => status.close());
    logger.info({ port: status.port }, "tells of itself over HTTP");
  }
  let stopped: Promise<void> | null = null;
  return {
    url,
    database,
    first: role === "worker" ? null : await firstSignIn(database, organization, url),
    stop: () => (stopped ??= stopAll()),
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

async function answers(database: Database): Promise<boolean> {
  return (await database.pool.query("select 1")).rowCount === 1;
}

/** @returns the address at which people reach it */
async function startApi(parts: Parts, role: ServerRole, stops: (() => Promise<void>)[]): Promise<string> {
  const { config, logger, metrics, traces, database, vault, sandbox, providers, forges } = parts;
  // Known only once the server listens, when the port is chosen by the system.
  let listening = config.publicUrl ?? "";
  const own = () => chooseDefaultAgent(config, providers);
  const defaultAgent = role === "all" ? own : () => fleetDefaultAgent(config, database);
  const app = await createApp({
    database,
    intake: createIntake(database),
    vault,
    logger,
    metrics,
    metricsToken: config.metricsToken,
    traces,
    publicUrl: () => listening,
    sandboxed: sandbox.isolates,
    allowLocalRepositories: config.allowLocalRepositories,
    rateLimitPerMinute: config.rateLimitPerMinute,
    maxRunningPerOrganization: config.maxRunningPerOrganization,
    queueLimit: config.queueLimit,
    // A database of one's own is elsewhere, and says itself when it is full.
    hasRoom: () =>
      config.databaseUrl === null ? hasRoom(config.data, config.minimumFreeBytes) : Promise.resolve(true),
    hosts: config.hosts,
    trustedProxies: config.trustedProxies,
    signInMethods: createSignInMethods(config),
    signInPolicy: config.signInPolicy,
    defaultAgent,
    agents: async () => {
      const known = await listAgents(providers, own);
      return role === "all" ? known : fleetAgents(known, await listWorkers(database), await defaultAgent());
    },
    integrationOf: forges.integrationOf,
    renderInstructions,
    checkInstructions,
    webDirectory: join(import.meta.dirname, import.meta.filename.endsWith(".ts") ? "../dist/web" : "web"),
    ready: () => answers(database),
  });
  stops.push(() => app.close());
  const url = await listen(app, config);
  listening = config.publicUrl ?? url;
  await writeFile(addressFile(config), `${listening}\n`);
  return listening;
}

const reportEveryMs = 15_000;

async function startWork(parts: Parts, url: string, stops: (() => Promise<void>)[]): Promise<void> {
  const { config, logger, metrics, traces, database, sandbox, providers } = parts;
  // Sockets that a killed server left.
  await rm(socketDirectory(config), { recursive: true, force: true });
  const id = await readWorkerId(config.data);
  const stopTending = sandbox.tend?.();
  if (stopTending !== undefined) stops.push(stopTending);
  const run = createRunDependencies(config, { ...parts, publicUrl: () => url, workerId: id });
  await run.workspaces.forgetIncoming();
  const worker = await startWorker({
    database,
    logger,
    metrics,
    id,
    concurrency: config.concurrency,
    leaseMs: config.leaseMs,
    maxRunningPerOrganization: config.maxRunningPerOrganization,
    maxRunningPerRepository: config.maxRunningPerRepository,
    hasRoom: () => hasRoom(config.data, config.minimumFreeBytes),
    drainMs: config.drainMs,
    runSession: (session, signals) => runSession(run, session, signals),
    runJob: (job) => runJob({ database, logger, traces, sandboxed: sandbox.isolates }, job),
  });
  stops.push(() => worker.stop());
  const defaultAgent = () => chooseDefaultAgent(config, providers);
  const report = async (): Promise<void> =>
    reportWorker(database, {
      id,
      agents: await listAgents(providers, defaultAgent),
      defaultAgent: await defaultAgent(),
      concurrency: config.concurrency,
    });
  await report();
  const reporting = setInterval(() => {
    report().catch((error: unknown) => logger.warn({ err: error }, "could not say that this worker is there"));
  }, reportEveryMs);
  stops.push(() => (clearInterval(reporting), removeWorker(database, id)));
  const { retention } = config;
  const { workspaces, objects } = run;
  const house = { database, logger, objects, workspaces, recordingsDirectory: recordingsDirectory(config), retention };
  stops.push(startHousekeeping(house));
  const { vault, forges } = parts;
  const publicUrl = () => url;
  stops.push(startRelay({ database, vault, logger, metrics, publicUrl, privateHosts: config.webhookHosts }));
  const stopFollowing = followPullRequests({
    database,
    logger,
    forgeOf: forges.forgeOf,
    minutes: config.pullRequestMinutes,
  });
  stops.push(() => Promise.resolve(stopFollowing()));
}

/** Where a server leaves its address, for the commands beside it. */
function addressFile(config: Config): string {
  return join(config.data, "address");
}

/** The address of the server that was last started on this data folder; by its settings where none was. */
export async function lastAddress(config: Config): Promise<string> {
  const bySettings = config.publicUrl ?? `http://${config.host}:${config.port}`;
  const written = await readFile(addressFile(config), "utf8").catch(() => "");
  return written.trim() || bySettings;
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

async function listen(app: Awaited<ReturnType<typeof createApp>>, config: Config): Promise<string> {
  await app.listen({ host: config.host, port: config.port });
  const address = app.server.address();
  const port = typeof address === "object" && address !== null ? address.port : config.port;
  // An address that means "all" is no address to open in a browser.
  const host = config.host === "0.0.0.0" || config.host === "::" ? "127.0.0.1" : config.host;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/**
 * Opens the store for one command beside a server that may be running, and closes it again.
 * @throws NotFoundError where the server was never started, so that there is nothing to work on
 */
export async function withStore<T>(
  config: Config,
  work: (database: Database, organizationId: string) => Promise<T>,
): Promise<T> {
  const database = await openBeside(config);
  try {
    return await work(database, await findDefaultOrganization(database));
  } finally {
    await database.close();
  }
}

/** The audit log's line for a command on the server's machine. */
export function noteCommand(
  database: Database,
  organizationId: string,
  action: string,
  target: string | null,
): Promise<void> {
  const entry = { organizationId, actor: "command", keyId: null, userId: null, action, target, status: 200 } as const;
  return appendAudit(database, [{ ...entry, address: hostname(), requestId: null }]);
}

/** The database for a short command, whether or not a server runs on it. */
export function openBeside(config: Config): Promise<Database> {
  const { databaseUrl: url, databaseDirectory: directory } = config;
  return openDatabase({ url, directory, logger: createLogger("error"), beside: true });
}

/** Carries a recorded session out once more, beside a server that may be running. @throws NotFoundError */
export function replayBeside(
  config: Config,
  sessionId: string,
  options: { readonly onEvent: (event: NewEvent) => void; readonly signal: AbortSignal },
): Promise<ReplayResult> {
  return withStore(config, (database, organizationId) => {
    const run = createRunDependencies(config, {
      database,
      logger: createLogger("error"),
      metrics: createMetrics(),
      traces: noTraces,
      vault: openVault(config),
      sandbox: createSandbox(config),
      providers: createRegistry(config),
      forges: createForges(config.forges),
      publicUrl: () => config.publicUrl ?? "",
      workerId: "replay",
    });
    const recorded = { ...run, recordingsDirectory: recordingsDirectory(config) };
    return replaySession(recorded, { organizationId, id: sessionId }, options);
  });
}
