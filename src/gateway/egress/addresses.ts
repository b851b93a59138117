import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { IPAddressRanges } from "@microsoft/antissrf";

/**
 * Networks inside of clouds that the kept list does not have: IBM Cloud's services, which answer only to its own machines
 * (https://cloud.ibm.com/docs/vpc?topic=vpc-service-endpoints-for-vpc).
 */
const insideClouds = ["161.26.0.0/16", "166.8.0.0/14"];

/**
 * What is not the public internet: this host, private networks, link-local, shared and reserved space
 * (https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-), and the metadata and agent addresses of clouds,
 * some of which look public (168.63.129.16). The list is kept by Microsoft's security team.
 */
const notPublic = blockListOf([...IPAddressRanges.recommendedLatest, ...insideClouds]);
/** Of IPv6 only global unicast is given out (RFC 4291); the list above says what of it is not public. */
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
 * Whether an IP address is one of the public internet. False for what is no address, and for an IPv6 address that carries an
 * IPv4 one (mapped, 6to4, NAT64, Teredo): nobody needs it here.
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
 * Where a host is: the address that it says itself, else all that its name has.
 * @param host a name or an IP address, without brackets
 * @throws Error if the name has none, or could not be looked up
 */
export async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * The address at which a host is reached: the first public one that it has.
 * @param host a name or an IP address, without brackets
 * @returns `private` if it has only others, null if it has none or can't be looked up
 */
export async function publicAddressOf(host: string): Promise<{ readonly address: string } | "private" | null> {
  const found = await addressesOf(host).catch(() => []);
  const address = found.find(isPublicAddress);
  if (address !== undefined) return { address };
  return found.length > 0 ? "private" : null;
}
