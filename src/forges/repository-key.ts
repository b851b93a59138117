import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import { servesAddress } from "./serves.ts";

/** A forge's host and how it compares paths. */
export interface ForgePaths {
  readonly webUrl: string;
  /** Whether `Acme/App` and `acme/app` are one repository on it. */
  readonly ignoresCase: boolean;
  /** The path of a repository that has several on it, always the same one; omitted: each has one. */
  readonly usualPath?: (address: RepositoryAddress) => string;
}

/** Public forges, all of which ignore the case of paths, and further hosts of the same repositories. */
const publicForges: Readonly<Record<string, readonly string[]>> = {
  "dev.azure.com": [],
  "github.com": ["www.github.com", "ssh.github.com"],
  "gitlab.com": ["www.gitlab.com", "altssh.gitlab.com"],
  "bitbucket.org": ["www.bitbucket.org", "altssh.bitbucket.org"],
  "codeberg.org": ["www.codeberg.org"],
  "gitea.com": ["www.gitea.com"],
};
const publicHosts = new Map(
  Object.entries(publicForges).flatMap(([host, others]) => [host, ...others].map((each) => [each, host] as const)),
);

/**
 * A key that is equal for all addresses of one repository, so that its limits and settings apply to each: the forge's
 * host without protocol and port, and the path, whose case counts unless the forge ignores it.
 * @param forges the configured ones
 */
export function repositoryKey(forges: readonly ForgePaths[], address: RepositoryAddress): string {
  const forge = forges.find(({ webUrl, ignoresCase }) => servesAddress(webUrl, address, ignoresCase));
  if (forge !== undefined) {
    const key = `${new URL(forge.webUrl).host}/${forge.usualPath?.(address) ?? address.path}`;
    return forge.ignoresCase ? key.toLowerCase() : key;
  }
  const isSsh = !/^https?:/u.test(address.cloneUrl);
  const host = publicHosts.get((isSsh ? address.host?.replace(/:\d+$/u, "") : address.host) ?? "");
  return host === undefined ? address.key : `${host}/${address.path}`.toLowerCase();
}
