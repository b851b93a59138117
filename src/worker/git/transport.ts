import type { Outbound } from "../../outbound/process-wide.ts";
import { proxyOfUrl, proxyVariables } from "../../outbound/proxies.ts";
import { usersSsh, type SshSettings } from "./ssh.ts";

/** How git reaches remotes, as the operator configured it. */
export interface GitTransport {
  /** Environment variables of each git process that contacts a remote: proxies, and the file of trusted certificates. */
  readonly variables: Readonly<Record<string, string>>;
  readonly ssh: SshSettings;
  /** Whether a remote is contacted through a proxy. */
  readonly isProxied: (url: string) => boolean;
}

/** Contacts every remote directly, and trusts what the system trusts. */
export const directTransport: GitTransport = { variables: {}, ssh: usersSsh, isProxied: () => false };

/**
 * Makes git's transport. git has one file of certificates, in the place of the system's: so that file must hold both.
 * @param bundle path of the file with all trusted certificates; null: the system's certificates
 */
export function createTransport(
  { proxies }: Pick<Outbound, "proxies">,
  ssh: SshSettings,
  bundle: string | null,
): GitTransport {
  return {
    ssh,
    variables: {
      ...proxyVariables(proxies),
      ...(bundle !== null && { GIT_SSL_CAINFO: bundle, GIT_PROXY_SSL_CAINFO: bundle }),
    },
    isProxied: (url) => proxyOfUrl(proxies, url) !== null,
  };
}
