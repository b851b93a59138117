import { randomUUID } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Provider } from "../agents/harness.ts";
import { createProviders } from "../agents/providers.ts";
import { replaceFile } from "../atomic-file.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import { hasFreeSpace } from "../database/free-space.ts";
import { createMask } from "../domain/masking/mask.ts";
import type { SignInMethod } from "../domain/people/user.ts";
import { createForges } from "../forges/forges.ts";
import { createOrganizationForges, type OrganizationForges } from "../forges/organization-forges.ts";
import { createGuardedFetch, type GuardedFetch } from "../gateway/egress/guarded-fetch.ts";
import { createGatewayProcesses } from "../gateway/process/process.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { createObjectStore, type ObjectStore } from "../objects/object-store.ts";
import type { Logger } from "../observability.ts";
import { bundleWith, useProcessWide } from "../outbound/process-wide.ts";
import { withAuthorities } from "../sandboxes/authorities.ts";
import { createBubblewrap } from "../sandboxes/bubblewrap.ts";
import { createContainerSandbox } from "../sandboxes/container/container.ts";
import { createUnsandboxed } from "../sandboxes/none.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { createGitHubSignIn } from "../sign-in/github.ts";
import { createOidc } from "../sign-in/oidc.ts";
import { checkConnectionSoon, openConnections } from "../store/secrets/forge-connections.ts";
import { environmentKeyring, fileKeyring } from "../store/secrets/keyring.ts";
import { createVault, type Vault } from "../store/secrets/vault.ts";
import type { Traces } from "../traces.ts";
import type { AttemptServices } from "../worker/attempt/attempt.ts";
import { createEnvironmentCache } from "../worker/disk/environment-cache.ts";
import { createImageDisks, watchedDisks } from "../worker/disk/session-disk.ts";
import { createSessionFolders } from "../worker/disk/session-folders.ts";
import { createMirrors } from "../worker/git/mirrors.ts";
import { openSigner, type Signer } from "../worker/git/signer.ts";
import { createTransport } from "../worker/git/transport.ts";

/** A disk with less free space counts as full. */
const leastRoomBytes = 1024 * 1024;

/** Makes the configured sandbox, for the server and for commands. */
export function createSandbox(config: Config, logger: Logger | null = null): Sandbox {
  switch (config.sandbox) {
    case "bubblewrap":
      return createBubblewrap(config.sandboxUids);
    case "container":
      return createContainerSandbox(config.container, {
        serverId: () => readWorkerId(config.data),
        makersFolder: join(config.data, "alive"),
        uids: config.sandboxUids,
        logger,
      });
    case "none":
      return createUnsandboxed();
  }
}

/**
 * The worker's id. It stays the same after a restart, so that a worker that was killed recovers its own sessions at
 * once.
 */
export async function readWorkerId(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, "worker-id");
  try {
    const known = await readFile(file, "utf8");
    // The file may be empty after a power failure. Two workers with an empty id would take each other's sessions for
    // their own.
    if (known !== "") return known;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const id = `${hostname()}-${randomUUID()}`;
  await mkdir(dataDirectory, { recursive: true });
  await replaceFile(file, id, { mode: 0o600, durable: true });
  return id;
}

/** Opens the vault with the operator's master key, or with the one in the data folder. */
export function openVault({ masterKey, data }: Config): Vault {
  return createVault(masterKey === null ? fileKeyring(join(data, "master.key")) : environmentKeyring(masterKey));
}

/** Opens the object store; null if none is configured, and large artifacts are in the database. */
export function openObjects({ objects }: Config): ObjectStore | null {
  return objects === null ? null : createObjectStore(objects);
}

/** How forges are reached that organizations name: the operator's own servers, and hosts of OFFSTAGE_FORGE_HOSTS, may be private. */
export function createForgeReach({ forges, forgeHosts, outbound }: Config): GuardedFetch {
  const named = forges.flatMap((forge) => [forge.webUrl, ...("apiUrl" in forge ? [forge.apiUrl] : [])]);
  return createGuardedFetch({
    privateHosts: forgeHosts,
    privateServers: named,
    setting: "OFFSTAGE_FORGE_HOSTS",
    proxies: outbound.proxies,
  });
}

/** Makes the forges of each organization: its connections, then the operator's. */
export function openForges(
  { forges: configured }: Config,
  {
    database,
    vault,
    logger,
    reach,
  }: {
    readonly database: Database;
    readonly vault: Vault;
    readonly logger: Logger;
    readonly reach: GuardedFetch;
  },
): OrganizationForges {
  return createOrganizationForges({
    configured,
    reach,
    load: (organizationId) => openConnections(database, vault, organizationId),
    refused: (id) =>
      void checkConnectionSoon(database, id).catch((error: unknown) =>
        logger.warn({ err: error, connectionId: id }, "could not ask for a connection's check"),
      ),
  });
}

/** Makes the providers of agents: the built-in ones and those of the operator. */
export function createRegistry(config: Config): Provider[] {
  return createProviders({ models: config.models, custom: config.customProviders });
}

/** The operator's default agent, or the first provider that can run, with its default model; null if none can. */
export async function chooseDefaultAgent(config: Config, providers: readonly Provider[]): Promise<string | null> {
  if (config.defaultAgent !== null) return config.defaultAgent;
  for (const provider of providers) {
    if ((await provider.problem()) !== null) continue;
    return provider.defaultModel === null ? provider.id : `${provider.id}:${provider.defaultModel}`;
  }
  return null;
}

/** Makes the configured sign-in methods. */
export function createSignInMethods({ oidc, githubSignIn }: Config): SignInMethod[] {
  return [
    ...(oidc === null ? [] : [createOidc(oidc)]),
    ...(githubSignIn === null ? [] : [createGitHubSignIn(githubSignIn)]),
  ];
}

/** Folder of kept results of setups. */
export function environmentsDirectory({ data }: Config): string {
  return join(data, "environments");
}

/** Folder of the recorded model responses. */
export function recordingsDirectory({ data }: Config): string {
  return join(data, "recordings");
}

/** Folder of the gateways' unix sockets. */
export function socketDirectory({ data }: Config): string {
  return join(data, "run");
}

/**
 * Makes this process use the operator's proxies and certificates.
 * @returns puts everything back
 * @throws InvalidInputError if this version of Node can't
 */
export function reachOutside({ outbound, forges, models, objects, oidc, githubSignIn, traces }: Config): () => void {
  const contacted = [
    ...forges.flatMap((forge) => [forge.webUrl, ...("apiUrl" in forge ? [forge.apiUrl] : [])]),
    ...Object.values(models).map(({ baseUrl }) => baseUrl),
    objects?.endpoint,
    oidc?.issuer,
    githubSignIn?.webUrl,
    githubSignIn?.apiUrl,
    traces?.endpoint,
  ];
  return useProcessWide(
    outbound,
    contacted.filter((url) => url !== undefined),
  );
}

/**
 * Writes the file of all trusted certificates, for programs that take one in the place of the system's: git, and tools in
 * sandboxes. Without OFFSTAGE_CA_FILE they use the system's own.
 */
export async function writeAuthorities({ data, outbound }: Config): Promise<void> {
  if (outbound.authorities.length === 0) return;
  await mkdir(data, { recursive: true });
  await replaceFile(authoritiesFile(data), bundleWith(outbound.authorities), { mode: 0o644 });
}

const authoritiesFile = (data: string): string => join(data, "authorities.pem");

/**
 * Opens the operator's signing key; null if none is configured.
 * @throws InvalidInputError if it can't sign
 */
export async function openConfiguredSigner({ signingKeyFile, data, ssh }: Config): Promise<Signer | null> {
  if (signingKeyFile === null) return null;
  return openSigner(signingKeyFile, { folder: join(data, "signing"), agent: ssh.agent });
}

/** Everything that attempts need of this worker. */
export function createAttemptServices(
  config: Config,
  parts: {
    readonly database: Database;
    readonly logger: Logger;
    readonly metrics: Metrics;
    readonly traces: Traces;
    readonly vault: Vault;
    readonly sandbox: Sandbox;
    readonly providers: readonly Provider[];
    readonly forges: OrganizationForges;
    readonly publicUrl: () => string;
    readonly workerId: string;
    /** See `openConfiguredSigner`; omitted: commits are not signed. */
    readonly signer?: Signer | null;
  },
): AttemptServices {
  const { workerId, database, logger, metrics, traces, vault, sandbox, providers, forges, publicUrl } = parts;
  const operators = createForges(config.forges);
  return {
    workerId,
    database,
    vault,
    objects: openObjects(config),
    logger,
    metrics,
    traces,
    sandbox: config.authoritiesInSandbox ? withAuthorities(sandbox, authoritiesFile(config.data)) : sandbox,
    sandboxImage: config.sandbox === "container" ? config.container.image : null,
    devcontainerImages: config.devcontainerImages,
    providers,
    publicUrl,
    folders: createSessionFolders(
      config.data,
      config.sessionDisks === "image" ? createImageDisks(join(config.data, "disks"), config.limits) : watchedDisks,
      (folder) => sandbox.releaseOwner(folder),
    ),
    mirrors: createMirrors({
      dataDirectory: config.data,
      allowLocalRepositories: config.allowLocalRepositories,
      fetch: config.fetch,
      transport: createTransport(
        config.outbound,
        config.ssh,
        config.outbound.authorities.length === 0 ? null : authoritiesFile(config.data),
      ),
    }),
    author: config.commitAuthor,
    committer: config.committer,
    signer: parts.signer ?? null,
    environmentCache: createEnvironmentCache({
      directory: environmentsDirectory(config),
      maximumBytes: config.setupCacheBytes,
    }),
    defaultAgent: () => chooseDefaultAgent(config, providers),
    forgesOf: forges.of,
    forgeOf: operators.forgeOf,
    repositoryKeyOf: operators.keyOf,
    forks: config.forks,
    mask: createMask(serverSecrets(config)),
    stallMs: config.stallMs,
    retryForMs: config.retryForMs,
    turnLimitMs: config.turnLimitMs,
    setupLimitMs: config.setupLimitMs,
    models: config.models,
    allowedModels: config.allowedModels,
    modelPermits: config.modelPermits,
    gateways: createGatewayProcesses({ outbound: config.outbound }),
    prices: config.prices,
    recordingsDirectory: config.recordsModels ? recordingsDirectory(config) : null,
    egress: config.egress,
    registryHosts: config.registryHosts,
    sandboxAuthorities: config.authoritiesInSandbox ? config.outbound.authorities : [],
    limits: config.limits,
    checkpointBytes: config.checkpointBytes,
    diskIsFull: async () => !(await hasFreeSpace(config.data, leastRoomBytes)),
    ownDisks: config.sessionDisks === "image",
    socketDirectory: socketDirectory(config),
    permissions: config.permissions,
  };
}

/** The password of an address, as it is written there and as it is. */
function passwordsIn(address: string | null): string[] {
  const password = address !== null && URL.canParse(address) ? new URL(address).password : "";
  if (password === "") return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}

/** Values that must never be stored or logged: the mask removes them from all output. */
export function serverSecrets(config: Config): string[] {
  const { anthropic, openai, google, compatible } = config.models;
  const forgeSecrets = config.forges.flatMap((forge) =>
    forge.kind === "github" ? [forge.token, forge.app?.privateKey] : [forge.token],
  );
  const customSecrets = config.customProviders.flatMap(({ environment }) =>
    Object.entries(environment).flatMap(([name, value]) => (/key|token|secret|password/iu.test(name) ? [value] : [])),
  );
  return [
    ...(config.masterKey?.split(",") ?? []),
    ...passwordsIn(config.databaseUrl),
    ...passwordsIn(config.outbound.proxies.http),
    ...passwordsIn(config.outbound.proxies.https),
    config.oidc?.clientSecret,
    config.githubSignIn?.clientSecret,
    ...forgeSecrets,
    ...customSecrets,
    anthropic?.apiKey,
    openai?.apiKey,
    google?.apiKey,
    compatible?.apiKey,
    config.adminKey,
    config.metricsToken,
    config.objects?.secretAccessKey,
    ...Object.values(config.traces?.headers ?? {}),
  ].filter((secret) => typeof secret === "string");
}
