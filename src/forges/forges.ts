import { RunError } from "../domain/errors.ts";
import { isAddressProblem, parseRepositoryUrl, type Repository, type RepositoryAddress } from "../domain/repository.ts";
import type { Forge, ForgeSettings, GitCredentials } from "./forge.ts";
import { createGitea } from "./gitea.ts";
import { createGitHub } from "./github.ts";
import { createPlainGit } from "./plain-git.ts";
import { repositoryKey } from "./repository-key.ts";

export interface Forges {
  /** The configured forge that serves the address, else plain git. */
  forgeOf(address: RepositoryAddress): Forge;
  /** The same as the API shows it; never a secret. */
  integrationOf(url: string): Repository["integration"];
  /** What tells that two addresses are the same repository. */
  keyOf(address: RepositoryAddress): string;
}

/** Makes an adapter for each configured forge; the longest address wins where one lies below another. */
export function createForges(settings: readonly ForgeSettings[]): Forges {
  const sorted = settings.toSorted((a, b) => b.webUrl.length - a.webUrl.length);
  const forges = sorted.map((each) => withGuardedCredentials(createForge(each), each.webUrl));
  const paths = sorted.map(({ kind, webUrl }) => ({ webUrl, ignoresCase: kind !== "git" }));
  const anyGit = createPlainGit(null);
  const forgeOf = (address: RepositoryAddress): Forge => forges.find((forge) => forge.serves(address)) ?? anyGit;
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

function createForge(settings: ForgeSettings): Forge {
  switch (settings.kind) {
    case "github":
      return createGitHub(settings);
    case "gitea":
      return createGitea(settings);
    case "git":
      return createPlainGit(settings);
  }
}

/** ssh has keys of its own, and a token for https is never sent for all the network to read. */
function withGuardedCredentials(forge: Forge, webUrl: string): Forge {
  async function credentials(address: RepositoryAddress, signal: AbortSignal): Promise<GitCredentials | null> {
    if (!/^https?:/u.test(address.cloneUrl)) return null;
    const given = await forge.credentials(address, signal);
    if (given === null || !webUrl.startsWith("https:") || address.cloneUrl.startsWith("https:")) return given;
    throw new RunError({
      code: "repository_access_denied",
      reason: `The repository's address ${address.cloneUrl} is not encrypted, and the token is for ${webUrl}.`,
      retryable: false,
      mend: "Start a session with the address that begins with https://.",
    });
  }
  return { ...forge, credentials };
}
