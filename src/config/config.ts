import { availableParallelism, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { registryHosts } from "../domain/environments/egress.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { problemOf } from "../domain/errors/problem.ts";
import { chooseDataFolder, type DataFolder } from "./data-folder.ts";
import { forgeSettingsOf, mailOf, modelsOf, objectsOf, outboundOf, signInOf, sshOf } from "./groups.ts";
import { variablesSchema, type Variables } from "./variables.ts";

/** Flags of the command line. Each overrides its variable. */
export interface ConfigFlags {
  readonly data?: string | undefined;
  readonly host?: string | undefined;
  readonly port?: string | undefined;
  readonly sandbox?: string | undefined;
}

const flagVariables = {
  data: "OFFSTAGE_DATA",
  host: "OFFSTAGE_HOST",
  port: "OFFSTAGE_PORT",
  sandbox: "OFFSTAGE_SANDBOX",
} as const;

/** All settings of a server, validated. Units are in the names. */
export type Config = ReturnType<typeof readConfig>;

const gibibyte = 1024 ** 3;

/** Warm sandboxes if the operator says nothing: a large harness takes a gigabyte in each. */
function usualWarm(memoryBytes: number, concurrency: number): number {
  if (memoryBytes < 4 * gibibyte || (concurrency === 1 && memoryBytes < 8 * gibibyte)) return 0;
  return memoryBytes < 16 * gibibyte ? 1 : 2;
}

/**
 * Converts environment variables and flags to one validated, frozen value. No other code reads them.
 * @throws InvalidInputError naming the variable or flag, and its problem
 */
export function readConfig(variables: Readonly<Record<string, string | undefined>>, flags: ConfigFlags = {}) {
  const merged: Record<string, string | undefined> = {};
  // Shells and Compose files write an unset variable as an empty one.
  for (const [name, value] of Object.entries(variables)) if (value !== "") merged[name] = value;
  for (const [name, variable] of Object.entries(flagVariables)) {
    const value = flags[name as keyof ConfigFlags];
    if (value !== undefined) merged[variable] = value;
  }
  // curl reads both spellings, and HTTP_PROXY in lower case alone.
  for (const name of ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"])
    merged[name] = merged[name.toLowerCase()] ?? merged[name];
  const parsed = variablesSchema.safeParse(merged);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const [variable, ...inside] = issue?.path ?? [];
    const ofFlag = Object.entries(flagVariables).find(
      ([name, named]) => named === variable && flags[name as keyof ConfigFlags] !== undefined,
    );
    const given = ofFlag === undefined ? String(variable) : `--${ofFlag[0]}`;
    const problem = issue === undefined ? "is not valid" : problemOf(issue);
    throw new InvalidInputError(`${[given, ...inside].join(".")}: ${problem}`);
  }
  return Object.freeze(configOf(parsed.data));
}

/** Variables of the command line, which are not settings of a server. */
const clientVariables = ["OFFSTAGE_API_KEY", "OFFSTAGE_SERVER"];

/**
 * Names of variables that look like settings but are unknown. If a name is misspelt, the setting that was meant has
 * its default.
 */
export function unknownVariables(variables: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set([...Object.keys(variablesSchema.shape), ...clientVariables]);
  return Object.keys(variables).filter((name) => name.startsWith("OFFSTAGE_") && !known.has(name));
}

function dataFolderOf({ OFFSTAGE_DATA: named, DATABASE_URL: databaseUrl }: Variables): DataFolder {
  if (named !== undefined) return { path: resolve(named), reason: null };
  const situation = { isRoot: process.getuid?.() === 0, isEmbedded: databaseUrl === undefined };
  return chooseDataFolder(process.cwd(), situation);
}

function identityOf(text: string) {
  const [, name = "", email = ""] = /^(.*) <(.*)>$/u.exec(text) ?? [];
  return { name, email };
}

function configOf(variables: Variables) {
  const { path: data, reason: dataReason } = dataFolderOf(variables);
  return {
    data,
    /** Why the default folder is not the usual one, as a sentence; null if it is, or if a folder was named. */
    dataReason,
    /** Whether the folder was named. */
    dataIsNamed: variables.OFFSTAGE_DATA !== undefined,
    databaseUrl: variables.DATABASE_URL ?? null,
    databaseDirectory: join(data, "postgres"),
    host: variables.OFFSTAGE_HOST,
    port: variables.OFFSTAGE_PORT,
    /** Null: derived from the address that the server listens on. */
    publicUrl: variables.OFFSTAGE_PUBLIC_URL?.replace(/\/+$/u, "") ?? null,
    hosts: variables.OFFSTAGE_HOSTS.map((name) => name.toLowerCase()),
    trustedProxies: variables.OFFSTAGE_TRUSTED_PROXIES,
    checkpointBytes: variables.OFFSTAGE_CHECKPOINT_MB * 1024 * 1024,
    registryHosts: variables.OFFSTAGE_REGISTRY_HOSTS.map((name) => name.toLowerCase()),
    forgeHosts: variables.OFFSTAGE_FORGE_HOSTS.map((name) => name.toLowerCase()),
    programHosts: variables.OFFSTAGE_PROGRAM_HOSTS.map((name) => name.toLowerCase()),
    webhookHosts: variables.OFFSTAGE_WEBHOOK_HOSTS.map((name) => name.toLowerCase()),
    /** The operator's mail server; null: no mail is sent. */
    mail: mailOf(variables),
    /** The APIs of the services that take answers back. */
    replyUrls: { slack: `${variables.OFFSTAGE_SLACK_API_URL}/`, linear: variables.OFFSTAGE_LINEAR_API_URL },
    pullRequestMinutes: variables.OFFSTAGE_PULL_REQUEST_MINUTES,
    /** Limits on what conversations about issues and pull requests may start. */
    conversations: {
      mention: variables.OFFSTAGE_MENTION,
      bots: variables.OFFSTAGE_ALLOWED_BOTS.map((name) => name.toLowerCase()),
      turns: variables.OFFSTAGE_CONVERSATION_TURNS,
      botTurns: variables.OFFSTAGE_CONVERSATION_BOT_TURNS,
      sessions: variables.OFFSTAGE_CONVERSATION_SESSIONS,
      usd: variables.OFFSTAGE_CONVERSATION_USD,
      checkRounds: variables.OFFSTAGE_CHECK_ROUNDS,
      conflictRounds: variables.OFFSTAGE_CONFLICT_ROUNDS,
      resolvesThreads: variables.OFFSTAGE_RESOLVE_THREADS,
      checksMs: variables.OFFSTAGE_CHECK_SECONDS * 1_000,
      reviewMs: 5_000,
    },
    /** Days after which data is deleted; 0: never. */
    retention: {
      workspaceDays: variables.OFFSTAGE_WORKSPACE_DAYS,
      auditDays: variables.OFFSTAGE_AUDIT_DAYS,
      deliveryDays: variables.OFFSTAGE_DELIVERY_DAYS,
      eventDays: variables.OFFSTAGE_EVENT_DAYS,
      diffDays: variables.OFFSTAGE_DIFF_DAYS,
      sessionDays: variables.OFFSTAGE_SESSION_DAYS,
      jobDays: variables.OFFSTAGE_JOB_DAYS,
      /** Limits of what is kept of sessions and jobs that have ended; 0: no limit. */
      eventsBytes: variables.OFFSTAGE_EVENTS_MB * 1024 * 1024,
      sessionEventsBytes: variables.OFFSTAGE_SESSION_EVENTS_MB * 1024 * 1024,
      jobsBytes: variables.OFFSTAGE_JOBS_MB * 1024 * 1024,
      recordingDays: variables.OFFSTAGE_RECORDING_DAYS,
      mirrorDays: variables.OFFSTAGE_MIRROR_DAYS,
      /** Limit of all mirrors together; 0: no limit. */
      mirrorsBytes: variables.OFFSTAGE_MIRRORS_MB * 1024 * 1024,
      /** Limit of all shared checkouts together; 0: no limit. */
      checkoutsBytes: variables.OFFSTAGE_CHECKOUTS_MB * 1024 * 1024,
    },
    /** Days that a browser stays signed in. */
    signInDays: variables.OFFSTAGE_SIGN_IN_DAYS,
    adminKey: variables.OFFSTAGE_ADMIN_KEY ?? null,
    ...signInOf(variables),
    /** Null: kept in a file in the data folder. */
    masterKey: variables.OFFSTAGE_MASTER_KEY ?? null,
    sandbox: variables.OFFSTAGE_SANDBOX,
    /**
     * How the disk space of sessions' folders is limited: "watch" checks it twice a second, "image" gives each a file
     * system, so that the kernel enforces it.
     */
    sessionDisks: variables.OFFSTAGE_SANDBOX_DISK,
    /** How clones get their files; "auto": the best way that works here. */
    workspaces: variables.OFFSTAGE_WORKSPACES,
    /** User ids of sessions if the server runs as root. Null: ids that no account has. */
    sandboxUids: variables.OFFSTAGE_SANDBOX_UIDS ?? null,
    container: {
      socket: variables.OFFSTAGE_CONTAINER_SOCKET,
      image: variables.OFFSTAGE_CONTAINER_IMAGE,
      runtime: variables.OFFSTAGE_CONTAINER_RUNTIME ?? null,
    },
    devcontainerImages: variables.OFFSTAGE_DEVCONTAINER_IMAGES,
    concurrency: variables.OFFSTAGE_CONCURRENCY,
    /** Most sandboxes that are kept ready for sessions. */
    warm: variables.OFFSTAGE_WARM ?? usualWarm(totalmem(), variables.OFFSTAGE_CONCURRENCY),
    maxRunningPerOrganization: variables.OFFSTAGE_MAX_RUNNING_PER_ORGANIZATION,
    /** Null: no limit. */
    maxRunningPerRepository: variables.OFFSTAGE_MAX_RUNNING_PER_REPOSITORY || null,
    queueLimit: variables.OFFSTAGE_QUEUE_LIMIT,
    minimumFreeBytes: variables.OFFSTAGE_MIN_FREE_MB * 1024 * 1024,
    allowLocalRepositories: variables.OFFSTAGE_ALLOW_LOCAL_REPOSITORIES,
    forks: variables.OFFSTAGE_FORKS,
    defaultAgent: variables.OFFSTAGE_DEFAULT_AGENT ?? null,
    customProviders: variables.OFFSTAGE_PROVIDERS ?? [],
    permissions: variables.OFFSTAGE_PERMISSIONS,
    /** Limits of one fetch from a repository's host. */
    fetch: {
      bytes: variables.OFFSTAGE_FETCH_MB * 1024 * 1024,
      memoryBytes: variables.OFFSTAGE_FETCH_MEMORY_MB * 1024 * 1024,
      ms: variables.OFFSTAGE_FETCH_MINUTES * 60_000,
    },
    limits: {
      memoryBytes: variables.OFFSTAGE_SANDBOX_MEMORY_MB * 1024 * 1024,
      processes: variables.OFFSTAGE_SANDBOX_PROCESSES,
      diskBytes: variables.OFFSTAGE_SANDBOX_DISK_MB * 1024 * 1024,
      files: variables.OFFSTAGE_SANDBOX_FILES,
      cpus: variables.OFFSTAGE_SANDBOX_CPUS ?? availableParallelism(),
    },
    allowedModels: variables.OFFSTAGE_MODELS,
    modelPermits: variables.OFFSTAGE_MODEL_ALLOW,
    prices: variables.OFFSTAGE_PRICES ?? {},
    recordsModels: variables.OFFSTAGE_RECORD,
    egress: {
      open: variables.OFFSTAGE_EGRESS === "open",
      rules: [...(variables.OFFSTAGE_EGRESS === "none" ? [] : registryHosts), ...variables.OFFSTAGE_EGRESS_ALLOW],
    },
    stallMs: variables.OFFSTAGE_STALL_SECONDS * 1_000,
    retryForMs: variables.OFFSTAGE_RETRY_HOURS * 3_600_000,
    setupLimitMs: variables.OFFSTAGE_SETUP_MINUTES * 60_000,
    setupCacheBytes: variables.OFFSTAGE_SETUP_CACHE_MB * 1024 * 1024,
    turnLimitMs: variables.OFFSTAGE_TURN_MINUTES * 60_000,
    drainMs: variables.OFFSTAGE_DRAIN_SECONDS * 1_000,
    leaseMs: variables.OFFSTAGE_LEASE_SECONDS * 1_000,
    rateLimitPerMinute: variables.OFFSTAGE_RATE_LIMIT_PER_MINUTE,
    deliveriesPerMinute: variables.OFFSTAGE_DELIVERIES_PER_MINUTE,
    commitAuthor: identityOf(variables.OFFSTAGE_COMMIT_AUTHOR),
    committer: identityOf(variables.OFFSTAGE_COMMIT_COMMITTER ?? variables.OFFSTAGE_COMMIT_AUTHOR),
    /** File of the key that signs commits; null: they are not signed. */
    signingKeyFile:
      variables.OFFSTAGE_SIGNING_KEY_FILE === undefined ? null : resolve(variables.OFFSTAGE_SIGNING_KEY_FILE),
    logLevel: variables.OFFSTAGE_LOG_LEVEL,
    logFormat: variables.OFFSTAGE_LOG_FORMAT,
    metricsToken: variables.OFFSTAGE_METRICS_TOKEN ?? null,
    /** Port of a worker that runs alone; null: it serves no metrics. */
    metricsPort: variables.OFFSTAGE_METRICS_PORT ?? null,
    /** Null: no traces. */
    traces:
      variables.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
        ? null
        : {
            endpoint: variables.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/+$/u, ""),
            headers: variables.OTEL_EXPORTER_OTLP_HEADERS,
            serviceName: variables.OTEL_SERVICE_NAME,
            share: variables.OTEL_TRACES_SAMPLER_ARG,
          },
    /** S3-compatible object store of large artifacts. Null: they are in the database. */
    objects: objectsOf(variables),
    /** How git reaches hosts by ssh. */
    ssh: sshOf(variables),
    outbound: outboundOf(variables),
    /** Whether programs in sandboxes trust the certificates of OFFSTAGE_CA_FILE too. */
    authoritiesInSandbox: variables.OFFSTAGE_CA_IN_SANDBOX && variables.OFFSTAGE_CA_FILE !== undefined,
    forges: forgeSettingsOf(variables),
    models: modelsOf(variables),
  } as const;
}
