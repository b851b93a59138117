import type { RepositoryAddress } from "../domain/repositories/repository.ts";

/**
 * Whether an address is on the server at `webUrl`, by http or by ssh (whose port differs).
 * @param ignoresCase whether capitals count in paths, which matters if `webUrl` has one
 */
export function servesAddress(webUrl: string, address: RepositoryAddress, ignoresCase = false): boolean {
  if (address.host === null) return false;
  const { host, hostname, pathname } = new URL(webUrl);
  const isSsh = !/^https?:/u.test(address.cloneUrl);
  const sameHost = isSsh ? address.host.split(":")[0] === hostname : address.host === host;
  const prefix = pathname.replace(/^\/+|\/+$/gu, "");
  const folded = (text: string): string => (ignoresCase ? text.toLowerCase() : text);
  return sameHost && (prefix === "" || folded(address.path).startsWith(`${folded(prefix)}/`));
}
