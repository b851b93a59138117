import type { RepositoryAddress } from "../domain/repositories/repository.ts";

/** Whether an address is on the server at `webUrl`, by http or by ssh (whose port differs). */
export function servesAddress(webUrl: string, address: RepositoryAddress): boolean {
  if (address.host === null) return false;
  const { host, hostname, pathname } = new URL(webUrl);
  const isSsh = !/^https?:/u.test(address.cloneUrl);
  const sameHost = isSsh ? address.host.split(":")[0] === hostname : address.host === host;
  const prefix = pathname.replace(/^\/+|\/+$/gu, "");
  return sameHost && (prefix === "" || address.path.startsWith(`${prefix}/`));
}
