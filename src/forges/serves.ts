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
  const prefix = withoutSlashes(pathname);
  const folded = (text: string): string => (ignoresCase ? text.toLowerCase() : text);
  return sameHost && (prefix === "" || folded(address.path).startsWith(`${folded(prefix)}/`));
}

/** The path of a repository on the server at `webUrl`, which may be below a path itself. */
export function pathOn(webUrl: string, { path }: RepositoryAddress): string {
  const prefix = withoutSlashes(new URL(webUrl).pathname);
  return prefix !== "" && path.toLowerCase().startsWith(`${prefix.toLowerCase()}/`)
    ? path.slice(prefix.length + 1)
    : path;
}

function withoutSlashes(pathname: string): string {
  return pathname.replace(/^\/+|\/+$/gu, "");
}
