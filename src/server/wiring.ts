import { randomUUID } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Provider } from "../agents/harness.ts";
import { createProviders } from "../agents/providers.ts";
import { replaceFile } from "../atomic-file.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import type { SignInMethod } from "../domain/people/user.ts";
import { createOrganizationForges, type OrganizationForges } from "../forges/organization-forges.ts";
import { createGuardedFetch, type GuardedFetch } from "../gateway/egress/guarded-fetch.ts";
import { createObjectStore, type ObjectStore } from "../objects/object-store.ts";
import type { Logger } from "../observability.ts";
import { createBubblewrap } from "../sandboxes/bubblewrap.ts";
import { createContainerSandbox } from "../sandboxes/container/container.ts";
import { createUnsandboxed } from "../sandboxes/none.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { checkConnectionSoon, openConnections } from "../store/secrets/opened-connections.ts";
import { environmentKeyring, fileKeyring } from "../store/secrets/keyring.ts";
import { createVault, type Vault } from "../store/secrets/vault.ts";

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

/** Makes the configured sign-in methods, and loads nothing of those that are not. */
export async function createSignInMethods({ oidc, githubSignIn }: Config): Promise<SignInMethod[]> {
  const methods: SignInMethod[] = [];
  if (oidc !== null) methods.push((await import("../sign-in/oidc.ts")).createOidc(oidc));
  if (githubSignIn !== null) methods.push((await import("../sign-in/github.ts")).createGitHubSignIn(githubSignIn));
  return methods;
}

/** Folder of the recorded model responses. */
export function recordingsDirectory({ data }: Config): string {
  return join(data, "recordings");
}
