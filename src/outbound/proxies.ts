import { BlockList, isIP } from "node:net";

/**
 * The operator's proxies, through which this program reaches the outside: HTTPS_PROXY, HTTP_PROXY and NO_PROXY as curl
 * understands them (https://curl.se/docs/manpage.html, section Environment).
 */
export interface Proxies {
  /** Address of the proxy of `http:` addresses, which may hold credentials; null: none. */
  readonly http: string | null;
  /** The same for `https:` addresses. */
  readonly https: string | null;
  /**
   * Hosts that are contacted directly: `example.com` with everything below it, the same with a port, an address, a
   * range of addresses (`10.0.0.0/8`), `*` for everything.
   */
  readonly direct: readonly string[];
}

/** No proxy at all. */
export const noProxies: Proxies = { http: null, https: null, direct: [] };

/** A place that is contacted. */
export interface Destination {
  /** As in a URL: `http:` or `https:`. Every other protocol is contacted directly. */
  readonly protocol: string;
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The proxy through which a place is contacted; null: directly. This machine is always contacted directly. */
export function proxyOf(proxies: Proxies, { protocol, host, port }: Destination): URL | null {
  const proxy = protocol === "https:" ? proxies.https : protocol === "http:" ? proxies.http : null;
  if (proxy === null || isDirect(proxies.direct, host.toLowerCase().replace(/\.$/u, ""), port)) return null;
  return new URL(proxy);
}

/** The same for a URL; null also for what is not a URL. */
export function proxyOfUrl(proxies: Proxies, url: string): URL | null {
  const parsed = URL.parse(url);
  if (parsed === null) return null;
  const { protocol, port } = parsed;
  const host = parsed.hostname.replace(/^\[|\]$/gu, "");
  return proxyOf(proxies, { protocol, host, port: Number(port) || (protocol === "https:" ? 443 : 80) });
}

function isDirect(entries: readonly string[], host: string, port: number): boolean {
  if (host === "localhost" || host.endsWith(".localhost") || host === "::1") return true;
  if (isIP(host) === 4 && host.startsWith("127.")) return true;
  return entries.some((entry) => {
    const { name, onPort } = partsOf(entry);
    if (onPort !== null && onPort !== port) return false;
    if (name === "*") return true;
    if (name.includes("/")) return isIP(host) !== 0 && isWithin(name, host);
    return host === name || (isIP(host) === 0 && host.endsWith(`.${name}`));
  });
}

/** An entry of NO_PROXY without the leading `.` or `*.`, which mean the same to curl as none. */
function partsOf(entry: string): { readonly name: string; readonly onPort: number | null } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/u.exec(entry) ?? [];
  const name = (bracketed ?? plain ?? entry).replace(/^\*?\.(?=.)/u, "").replace(/\.$/u, "");
  return { name, onPort: port === undefined ? null : Number(port) };
}

function isWithin(range: string, address: string): boolean {
  const [network = "", prefix = ""] = range.split("/");
  const family = isIP(network) === 6 ? "ipv6" : "ipv4";
  const list = new BlockList();
  list.addSubnet(network, Number(prefix), family);
  return isIP(address) === (family === "ipv6" ? 6 : 4) && list.check(address, family);
}

/**
 * Whether the text can be an entry of NO_PROXY: a host, an address or a range, with a port or without.
 * @param entry in lower case
 */
export function isDirectEntry(entry: string): boolean {
  const { name } = partsOf(entry);
  if (!name.includes("/")) return name !== "" && !/\s/u.test(name);
  const [network = "", prefix = "", more] = name.split("/");
  const most = [0, 0, 0, 0, 32, 0, 128][isIP(network)] ?? 0;
  return more === undefined && isIP(network) !== 0 && /^\d{1,3}$/u.test(prefix) && Number(prefix) <= most;
}

/**
 * The proxies as environment variables, for a program such as git: in both spellings, since curl reads `http_proxy` in
 * lower case only.
 */
export function proxyVariables({ http, https, direct }: Proxies): Record<string, string> {
  if (http === null && https === null) return {};
  // A leading dot or asterisk is left out: older versions of curl match `*.` with nothing.
  const entries = direct.map((entry) => entry.replace(/^\*?\.(?=.)/u, ""));
  // curl takes an asterisk for all hosts only if it is alone.
  const no = entries.includes("*") ? "*" : [...entries, "localhost", "127.0.0.1", "::1"].join(",");
  return {
    ...(http !== null && { http_proxy: http, HTTP_PROXY: http }),
    ...(https !== null && { https_proxy: https, HTTPS_PROXY: https }),
    no_proxy: no,
    NO_PROXY: no,
  };
}

/**
 * The proxies as Node's own clients take them. Of their two matchers one takes `example.com` for that host alone, and
 * neither knows ranges (https://nodejs.org/api/http.html#built-in-proxy-support).
 * @param contacted URLs that the configuration names: those in a range are listed one by one
 */
export function nodeProxyVariables(proxies: Proxies, contacted: readonly string[]): Record<string, string> {
  const { http, https, direct } = proxies;
  const entries = direct.flatMap((entry) => {
    const { name, onPort } = partsOf(entry);
    if (name === "*" || name.includes("/")) return name === "*" ? ["*"] : [];
    const port = onPort === null ? "" : `:${onPort}`;
    const host = isIP(name) === 6 ? `[${name}]` : name;
    return isIP(name) === 0 ? [`${host}${port}`, `.${host}${port}`] : [`${host}${port}`];
  });
  const named = contacted.filter((url) => proxyOfUrl(proxies, url) === null);
  const hosts = named.flatMap((url) => URL.parse(url)?.hostname ?? []);
  return {
    ...(http !== null && { http_proxy: http }),
    ...(https !== null && { https_proxy: https }),
    no_proxy: [...new Set([...entries, ...hosts, "localhost", ".localhost", "127.0.0.1", "[::1]", "::1"])].join(","),
  };
}
