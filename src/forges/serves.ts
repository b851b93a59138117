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

/**
 * The address of the server below which all its repositories are. `webUrl` may be that of one owner on it, so the API's
 * path decides: `<server>/api/v4`, or the root of its own host, as https://api.github.com; Bitbucket has it at `/2.0`
 * or `/rest/api/latest`.
 * @param apiUrl null: the server has no API, and paths on it do not matter
 */
export function serverUrl(webUrl: string, apiUrl: string | null): string {
  if (apiUrl === null) return webUrl;
  const { origin, pathname } = new URL(webUrl);
  const path = withoutSlashes(pathname);
  const prefix = withoutSlashes(
    withoutSlashes(new URL(apiUrl).pathname).replace(/(?:^|\/)(?:api\/v\d+|2\.0|rest\/api\/[\w.]+)$/u, ""),
  );
  if (prefix === "") return origin;
  const isBelow = `${path}/`.toLowerCase().startsWith(`${prefix}/`.toLowerCase());
  return isBelow ? `${origin}/${path.slice(0, prefix.length)}` : webUrl;
}

/** The path of a repository on the server at `webUrl`, which may be below a path itself. */
export function pathOn(webUrl: string, { path }: RepositoryAddress): string {
  const prefix = withoutSlashes(new URL(webUrl).pathname);
  return prefix !== "" && path.toLowerCase().startsWith(`${prefix.toLowerCase()}/`)
    ? path.slice(prefix.length + 1)
    : path;
}

/** The address of a repository's page on the server at `webUrl`, of forges that have pages where git is. */
export function pageOn(webUrl: string, address: RepositoryAddress): string {
  return `${webUrl.replace(/\/+$/u, "")}/${pathOn(webUrl, address)}`;
}

function withoutSlashes(pathname: string): string {
  return pathname.replace(/^\/+|\/+$/gu, "");
}
