import * as http from "node:http";
import * as tls from "node:tls";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { nodeProxyVariables, type Proxies } from "./proxies.ts";

/** How a process reaches the outside. Both can be sent between processes. */
export interface Outbound {
  readonly proxies: Proxies;
  /** Certificates that are trusted in addition to the usual ones, each as PEM. */
  readonly authorities: readonly string[];
}

/** The function of newer versions of Node (24.14 and 25.4). */
type SetProxies = (variables: Record<string, string>) => () => void;

/**
 * Makes every HTTP client of this process (`fetch`, `node:http`, `node:https`) use the proxies and trust the
 * certificates. A request with its own agent uses no proxy.
 * @param contacted URLs that the configuration names
 * @returns puts everything back
 * @throws InvalidInputError if this version of Node can't
 */
export function useProcessWide({ proxies, authorities }: Outbound, contacted: readonly string[]): () => void {
  const restoreAuthorities = trust(authorities);
  const restoreProxies = useProxies(proxies, contacted);
  return () => {
    restoreProxies();
    restoreAuthorities();
  };
}

/** Newer functions of Node that some of the versions that Offstage runs on lack (24.5 and 22.19). */
const { setDefaultCACertificates } = tls as unknown as {
  readonly setDefaultCACertificates?: (certificates: readonly string[]) => void;
};

function trust(authorities: readonly string[]): () => void {
  if (authorities.length === 0) return () => undefined;
  if (setDefaultCACertificates === undefined) {
    throw new InvalidInputError(
      `OFFSTAGE_CA_FILE: Node ${process.versions.node} can't use it; Node 22.19, 24.5 and newer can, and NODE_EXTRA_CA_CERTS works with each`,
    );
  }
  const before = tls.getCACertificates("default");
  setDefaultCACertificates([...before, ...authorities]);
  return () => setDefaultCACertificates(before);
}

function useProxies(proxies: Proxies, contacted: readonly string[]): () => void {
  if (proxies.http === null && proxies.https === null) return () => undefined;
  const { setGlobalProxyFromEnv: set } = http as unknown as { readonly setGlobalProxyFromEnv?: SetProxies };
  if (set === undefined) {
    throw new InvalidInputError(
      `HTTPS_PROXY, HTTP_PROXY: Node ${process.versions.node} can't use a proxy; Node 24.14 or newer can`,
    );
  }
  return set(nodeProxyVariables(proxies, contacted));
}

/**
 * All certificates that this process trusts, with further ones, as one file in PEM: tools that take a file, such as git,
 * use it in the place of the system's.
 */
export function bundleWith(authorities: readonly string[]): string {
  const all = new Set([...tls.getCACertificates("default"), ...tls.getCACertificates("system"), ...authorities]);
  return `${[...all].map((certificate) => certificate.trim()).join("\n")}\n`;
}
