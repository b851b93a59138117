import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Provider } from "../agents/harness.ts";
import { replaceFile } from "../atomic-file.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import { hasFreeSpace } from "../database/free-space.ts";
import { createMask } from "../domain/masking/mask.ts";
import { createForges } from "../forges/forges.ts";
import type { OrganizationForges } from "../forges/connections/organization-forges.ts";
import { createGatewayProcesses } from "../gateway/process/process.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Logger } from "../observability.ts";
import { bundleWith } from "../outbound/process-wide.ts";
import { withAuthorities } from "../sandboxes/authorities.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Vault } from "../store/secrets/vault.ts";
import type { Traces } from "../traces.ts";
import type { AttemptServices } from "../worker/attempt/attempt.ts";
import { createEnvironmentCache } from "../worker/disk/environment-cache.ts";
import { createMirrors } from "../worker/git/mirrors/mirrors.ts";
import { openSigner, type Signer } from "../worker/git/signer.ts";
import { createTransport } from "../worker/git/transport.ts";
import { serverSecrets } from "./server-secrets.ts";
import { chooseDefaultAgent } from "./agent-registry.ts";
import { openObjects, recordingsDirectory } from "./open-stores.ts";
import { createWorkspaces, type Workspaces } from "./workspaces.ts";

/** A disk with less free space counts as full. */
const leastRoomBytes = 1024 * 1024;

/** Folder of kept results of setups. */
export function environmentsDirectory({ data }: Config): string {
  return join(data, "environments");
}

/** Folder of the gateways' unix sockets. */
export function socketDirectory({ data }: Config): string {
  return join(data, "run");
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
): AttemptServices & Pick<Workspaces, "mounts"> {
  const { workerId, database, logger, metrics, traces, vault, sandbox, providers, forges, publicUrl } = parts;
  const operators = createForges(config.forges);
  const mirrors = createMirrors({
    dataDirectory: config.data,
    allowLocalRepositories: config.allowLocalRepositories,
    fetch: config.fetch,
    transport: createTransport(
      config.outbound,
      config.ssh,
      config.outbound.authorities.length === 0 ? null : authoritiesFile(config.data),
    ),
  });
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
    ...createWorkspaces(config, { sandbox, mirrors, metrics, logger }),
    mirrors,
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
    socketDirectory: socketDirectory(config),
    permissions: config.permissions,
  };
}
