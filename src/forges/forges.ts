import { azureSegments } from "../domain/repositories/azure-address.ts";
import { SessionError } from "../domain/errors/errors.ts";
import {
  isAddressProblem,
  parseRepositoryUrl,
  type Repository,
  type RepositoryAddress,
} from "../domain/repositories/repository.ts";
import { createAzure } from "./azure/azure.ts";
import { reachOf } from "./http/credential-reach.ts";
import type { Forge, ForgeSettings, GitCredentials, OpenedAccount, RepositoryCall } from "./forge.ts";
import { createBitbucketDataCenter } from "./bitbucket-data-center/bitbucket-data-center.ts";
import { gitPathOf } from "./bitbucket-data-center/place.ts";
import { createBitbucket } from "./bitbucket/bitbucket.ts";
import { createGitea } from "./gitea/gitea.ts";
import { createGitHub } from "./github/github.ts";
import { createGitLab } from "./gitlab/gitlab.ts";
import { createPlainGit } from "./plain-git.ts";
import { withReach, type Reach } from "./http/reach.ts";
import { repositoryKey } from "./repository-key.ts";
import { pathOn, serverUrl, servesAddress } from "./serves.ts";

/** The configured forges. */
export interface Forges {
  /** The configured forge that serves the address, else plain git. */
  forgeOf(address: RepositoryAddress): Forge;
  /** All that can be looked through, the organization's own first. */
  readonly browsable: readonly Forge[];
  /** The forge of an address as the API shows it, without secrets. */
  integrationOf(url: string): Repository["integration"];
  /** A key that is equal for all addresses of one repository. */
  keyOf(address: RepositoryAddress): string;
}

/** A forge with what it was made of. */
export interface NamedForge {
  readonly settings: ForgeSettings;
  readonly forge: Forge;
  /** Whether an organization connected it: of two forges of one address it goes first. */
  readonly isOwn?: boolean;
}

/**
 * Creates an adapter for each configured forge. If one forge's address is a prefix of another's, the longer one counts.
 */
export function createForges(settings: readonly ForgeSettings[]): Forges {
  return forgesOf(settings.map((each) => ({ settings: each, forge: createForge(each) })));
}

/** The forges together: the one with the longest address that fits serves a repository. */
export function forgesOf(named: readonly NamedForge[]): Forges {
  const sorted = named.toSorted(
    (a, b) =>
      b.settings.webUrl.length - a.settings.webUrl.length || Number(b.isOwn ?? false) - Number(a.isOwn ?? false),
  );
  const paths = sorted.map(({ settings }) => ({
    webUrl: settings.webUrl,
    ignoresCase: settings.kind !== "git",
    usualPath: (address: RepositoryAddress) => usualPathOf(settings, address),
  }));
  const anyGit = createPlainGit(null);
  const forgeOf = (address: RepositoryAddress): Forge =>
    sorted.find(({ forge }) => forge.serves(address))?.forge ?? anyGit;
  const ownFirst = named.toSorted((a, b) => Number(b.isOwn ?? false) - Number(a.isOwn ?? false));
  return {
    forgeOf,
    browsable: ownFirst.flatMap(({ forge }) => (forge.browse === null ? [] : [forge])),
    integrationOf(url) {
      const address = parseRepositoryUrl(url);
      if (isAddressProblem(address)) return undefined;
      const { id, kind, name, webUrl } = forgeOf(address);
      return { id, name, type: kind, configuration: { webUrl } };
    },
    keyOf: (address) => repositoryKey(paths, address),
  };
}

/**
 * Makes a forge's adapter, whose credentials are guarded. The adapter knows its server alone: it asks about repositories by their
 * path there, and makes forks, which are another owner's. What it serves may be less: one owner.
 * @param server the address of the server
 * @param fetchAs how the server is reached with people's credentials
 */
export function createForge(
  settings: ForgeSettings,
  server = serverOf(settings),
  fetchAs: Reach["fetch"] = (url, init) => fetch(url, init),
): Forge {
  const { kind, webUrl } = settings;
  const adapter = withGuardedCredentials(adapterOf({ ...settings, webUrl: server }), server);
  return {
    ...adapter,
    webUrl,
    within: webUrl.length > server.length ? webUrl.slice(server.length).replace(/^\/+/u, "") : "",
    serves: (address) => servesAddress(webUrl, address, kind !== "git"),
    as: (account) => Promise.resolve(callOf(settings, server, account, fetchAs)),
  };
}

/** The calls of the same forge with a person's credential, which is in nothing that they answer. */
function callOf(
  settings: ForgeSettings,
  server: string,
  { kind, apiUrl, token, username }: OpenedAccount,
  fetchAs: Reach["fetch"],
): RepositoryCall | null {
  if (settings.kind === "git" || settings.kind !== kind || settings.apiUrl !== apiUrl) return null;
  // Each kind has its own fields: what it has not of these is not sent.
  const theirs = { kind, webUrl: server, apiUrl, token, ...(username !== undefined && { username }) } as ForgeSettings;
  const { call } = adapterOf(theirs);
  if (call === null) return null;
  const reach = reachOf({ fetch: fetchAs }, { type: "token", token, ...(username !== undefined && { username }) });
  return (...given) => withReach(reach, () => call(...given));
}

/** The operator's API may be asked within a network, at another host and path than people use: the address is then the server's. */
export function serverOf(settings: ForgeSettings): string {
  const { kind, webUrl } = settings;
  if (kind === "git") return webUrl;
  const isOneHost = new URL(webUrl).origin === new URL(settings.apiUrl).origin;
  return isOneHost || kind === "github" || kind === "bitbucket" ? serverUrl(webUrl, settings.apiUrl) : webUrl;
}

/** See `ForgePaths`. */
function usualPathOf(settings: ForgeSettings, address: RepositoryAddress): string {
  switch (settings.kind) {
    case "azure":
      return azurePathOn(settings, address);
    case "bitbucketDataCenter":
      return gitPathOf(address.path);
    default:
      return address.path;
  }
}

/** On a server of Azure DevOps a project need not be named if it has the repository's name. */
function azurePathOn(settings: ForgeSettings, address: RepositoryAddress): string {
  const below = pathOn(serverOf(settings), address);
  const found = azureSegments(below.split("/"));
  if (found === null) return address.path;
  // The segments are still written as in a URL.
  const { collection, project, repository } = found;
  return `${address.path.slice(0, -below.length)}${collection}/${project}/_git/${repository}`;
}

function adapterOf(settings: ForgeSettings): Forge {
  switch (settings.kind) {
    case "azure":
      return createAzure(settings);
    case "github":
      return createGitHub(settings);
    case "gitlab":
      return createGitLab(settings);
    case "gitea":
      return createGitea(settings);
    case "bitbucket":
      return createBitbucket(settings);
    case "bitbucketDataCenter":
      return createBitbucketDataCenter(settings);
    case "git":
      return createPlainGit(settings);
  }
}

/**
 * Gives no token for ssh, which has its own keys, and never sends the token of an https forge over plain http, where
 * the network could read it.
 * @throws SessionError repository_access_denied for such an address
 */
function withGuardedCredentials(forge: Forge, webUrl: string): Forge {
  async function credentials(address: RepositoryAddress, signal: AbortSignal): Promise<GitCredentials | null> {
    if (!/^https?:/u.test(address.cloneUrl)) return null;
    const given = await forge.credentials(address, signal);
    if (given === null || !webUrl.startsWith("https:") || address.cloneUrl.startsWith("https:")) return given;
    throw new SessionError({
      code: "repository_access_denied",
      reason: `The repository's address ${address.cloneUrl} is not encrypted, and the token is for ${webUrl}.`,
      retryable: false,
      remedy: "Start a session with the address that begins with https://.",
    });
  }
  return { ...forge, credentials };
}
