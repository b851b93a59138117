import type { RepositoryAddress } from "../domain/repository.ts";
import { servesAddress } from "./serves.ts";

/** What is known of a forge's paths. */
export interface ForgePaths {
  readonly webUrl: string;
  /** Whether `Acme/App` and `acme/app` are one repository there. */
  readonly ignoresCase: boolean;
}

/** Public forges, which all ignore capitals in a path, and the further hosts at which each has the same repositories. */
const publicForges: Readonly<Record<string, readonly string[]>> = {
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
 * What tells that two addresses are the same repository, so that limits and other settings of the one hold for the other: the host
 * of the forge, by whatever protocol and port it is reached, and the path, whose capitals count unless the forge ignores them.
 * @param forges those that are configured
 */
export function repositoryKey(forges: readonly ForgePaths[], address: RepositoryAddress): string {
  const forge = forges.find(({ webUrl }) => servesAddress(webUrl, address));
  if (forge !== undefined) {
    const key = `${new URL(forge.webUrl).host}/${address.path}`;
    return forge.ignoresCase ? key.toLowerCase() : key;
  }
  const isSsh = !/^https?:/u.test(address.cloneUrl);
  const host = publicHosts.get((isSsh ? address.host?.replace(/:\d+$/u, "") : address.host) ?? "");
  return host === undefined ? address.key : `${host}/${address.path}`.toLowerCase();
}
