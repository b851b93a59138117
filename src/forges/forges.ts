import { SessionError } from "../domain/errors/errors.ts";
import {
  isAddressProblem,
  parseRepositoryUrl,
  type Repository,
  type RepositoryAddress,
} from "../domain/repositories/repository.ts";
import type { Forge, ForgeSettings, GitCredentials } from "./forge.ts";
import { createGitea } from "./gitea/gitea.ts";
import { createGitHub } from "./github/github.ts";
import { createGitLab } from "./gitlab/gitlab.ts";
import { createPlainGit } from "./plain-git.ts";
import { repositoryKey } from "./repository-key.ts";
import { serverUrl, servesAddress } from "./serves.ts";

/** The configured forges. */
export interface Forges {
  /** The configured forge that serves the address, else plain git. */
  forgeOf(address: RepositoryAddress): Forge;
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
  const paths = sorted.map(({ settings: { kind, webUrl } }) => ({ webUrl, ignoresCase: kind !== "git" }));
  const anyGit = createPlainGit(null);
  const forgeOf = (address: RepositoryAddress): Forge =>
    sorted.find(({ forge }) => forge.serves(address))?.forge ?? anyGit;
  return {
    forgeOf,
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
 */
export function createForge(settings: ForgeSettings, server = serverOf(settings)): Forge {
  const { kind, webUrl } = settings;
  const adapter = withGuardedCredentials(adapterOf({ ...settings, webUrl: server }), server);
  return { ...adapter, webUrl, serves: (address) => servesAddress(webUrl, address, kind !== "git") };
}

/** The operator's API may be asked within a network, at another host and path than people use: the address is then the server's. */
function serverOf(settings: ForgeSettings): string {
  const { kind, webUrl } = settings;
  if (kind === "git") return webUrl;
  const isOneHost = new URL(webUrl).origin === new URL(settings.apiUrl).origin;
  return isOneHost || kind === "github" ? serverUrl(webUrl, settings.apiUrl) : webUrl;
}

function adapterOf(settings: ForgeSettings): Forge {
  switch (settings.kind) {
    case "github":
      return createGitHub(settings);
    case "gitlab":
      return createGitLab(settings);
    case "gitea":
      return createGitea(settings);
    case "git":
      return createPlainGit(settings);
  }
}

/**
 * Gives no token for ssh, which has keys of its own, and never sends the token of an https forge over plain http, where
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
