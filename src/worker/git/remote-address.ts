import { SessionError } from "../../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import { isKnownPrivate, publicAddressOf } from "../../gateway/egress/addresses.ts";

/** A host with the address that was checked: git is pinned to it, so it contacts no other. */
export interface PinnedHost {
  readonly host: string;
  readonly port: number;
  /** Null: the operator's proxy resolves the name. */
  readonly address: string | null;
}

const usualPorts: Readonly<Record<string, number>> = { "http:": 80, "https:": 443, "ssh:": 22 };

/**
 * Resolves a repository's host, and requires a public address. Anyone who may create a session can name any host, and the
 * server would contact it: this machine, its network and a cloud's metadata service must not be reachable so. The operator
 * lists own servers in OFFSTAGE_FORGES; for those this is not called. If the host is contacted through the operator's proxy,
 * that one resolves the name: it is refused here only if this machine knows it as private.
 * @param proxied whether the URL is contacted through a proxy; not, if omitted
 * @returns null if the URL has no host
 * @throws SessionError repository_unreachable if the name does not resolve, or its address is not public
 */
export async function pinPublicHost(url: string, proxied = false): Promise<PinnedHost | null> {
  const parsed = parseRepositoryUrl(url);
  if (isAddressProblem(parsed) || parsed.host === null) return null;
  const { protocol, hostname, port } = new URL(url.includes("://") ? url : `ssh://${parsed.host}/`);
  const host = hostname.replace(/^\[|\]$/gu, "");
  const pinned = { host, port: Number(port) || (usualPorts[protocol] ?? 443) };
  const found = proxied ? await ownWordOn(host) : await publicAddressOf(host);
  if (found !== null && found !== "private") return { ...pinned, address: found.address };
  throw new SessionError({
    code: "repository_unreachable",
    reason:
      found === null
        ? `The name of the repository's host, ${host}, could not be resolved.`
        : `The repository's host ${host} is in a private network, and the operator of this server has not allowed it.`,
    // The name server may be unavailable, which can't be distinguished from a name that does not exist.
    retryable: found === null,
    remedy:
      "Check the address. To allow a git server of your own, the operator adds it to OFFSTAGE_FORGES (docs/forges.md).",
  });
}

async function ownWordOn(host: string): Promise<{ readonly address: null } | "private"> {
  return (await isKnownPrivate(host)) ? "private" : { address: null };
}
