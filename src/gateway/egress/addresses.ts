import { lookup } from "node:dns/promises";
import type { RequestOptions } from "node:http";
import { BlockList, isIP } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { IPAddressRanges } from "@microsoft/antissrf";

/**
 * Networks inside clouds that the package's list lacks: IBM Cloud's services, which answer only to its own machines
 * (https://cloud.ibm.com/docs/vpc?topic=vpc-service-endpoints-for-vpc).
 */
const insideClouds = ["161.26.0.0/16", "166.8.0.0/14"];

/**
 * Addresses that are not public: this host, private networks, link-local, shared and reserved space
 * (https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-), and metadata and agent addresses of clouds,
 * some of which look public (168.63.129.16). Microsoft's security team maintains the list.
 */
const notPublic = blockListOf([...IPAddressRanges.recommendedLatest, ...insideClouds]);
/** Only global unicast addresses of IPv6 are assigned (RFC 4291); the list above has those that are not public. */
const globalUnicast = blockListOf(["2000::/3"]);

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix = ""] = network.split("/");
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/**
 * Whether the text is a public IP address. False if it is not an address, or an IPv6 address that embeds an IPv4 one
 * (mapped, 6to4, NAT64, Teredo), which nothing needs here.
 */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !notPublic.check(address, "ipv4");
    case 6:
      // A zone names an interface of this host.
      if (address.includes("%")) return false;
      return globalUnicast.check(address, "ipv6") && !notPublic.check(address, "ipv6");
    default:
      return false;
  }
}

/**
 * A host's addresses: the host itself if it is an address, else all that its name resolves to.
 * @param host a name or an IP address, without brackets
 * @throws Error if the name can't be resolved
 */
export async function resolveAddresses(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * Time limit for resolving a name here too that a proxy resolves, in ms: behind a proxy there may be no resolver at
 * all.
 */
const ownLookupMs = 2_000;

/**
 * Whether a host that is contacted through a proxy is known here as private: it is such an address, or its name has
 * only such addresses. For a name that only the proxy can resolve, the proxy decides.
 * @param resolve finds a name's public address
 */
export async function isKnownPrivate(
  host: string,
  resolve: typeof publicAddressOf = publicAddressOf,
): Promise<boolean> {
  const overtime = new AbortController();
  const late = pause(ownLookupMs, null, { signal: overtime.signal }).catch(() => null);
  const found = await Promise.race([resolve(host), late]);
  overtime.abort();
  return found === "private";
}

/**
 * The first public address of a host.
 * @param host a name or an IP address, without brackets
 * @returns `private` if it has only others, null if it can't be resolved
 */
export async function publicAddressOf(host: string): Promise<{ readonly address: string } | "private" | null> {
  const found = await resolveAddresses(host).catch(() => []);
  const address = found.find(isPublicAddress);
  if (address !== undefined) return { address };
  return found.length > 0 ? "private" : null;
}

/** Options of a request that connect to an address that was checked, whatever the name resolves to by now, and through no proxy. */
export function connectsTo(address: string): Pick<RequestOptions, "agent" | "lookup"> {
  return {
    agent: false,
    lookup: (_host, options, done) => {
      const family = isIP(address);
      if (options.all === true) done(null, [{ address, family }]);
      else done(null, address, family);
    },
  };
}
