import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";

/**
 * What is not the public internet: this host, private networks, link-local with the metadata addresses of clouds,
 * shared and reserved space (https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-).
 * An IPv6 address that carries an IPv4 one (mapped, 6to4, NAT64, Teredo) is refused whole: nobody needs it here.
 */
const special4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const;

const blocked4 = new BlockList();
for (const [network, prefix] of special4) blocked4.addSubnet(network, prefix, "ipv4");

/** Global unicast, and of it not the ranges that carry IPv4 or are for documentation and benchmarks. */
const global6 = new BlockList();
global6.addSubnet("2000::", 3, "ipv6");
const blocked6 = new BlockList();
for (const [network, prefix] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const) {
  blocked6.addSubnet(network, prefix, "ipv6");
}

/** Whether an IP address is one of the public internet. False for what is no address. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !blocked4.check(address, "ipv4");
    case 6: {
      // A zone names an interface of this host.
      if (address.includes("%")) return false;
      return global6.check(address, "ipv6") && !blocked6.check(address, "ipv6");
    }
    default:
      return false;
  }
}

/**
 * Where a host is: the address that it says itself, else all that its name has.
 * @param host a name or an IP address, without brackets
 * @throws Error where the name has none, or could not be looked up
 */
export async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}
