import { z } from "zod";

/**
 * Hosts and ports that a sandbox may reach: `example.com`, or `*.example.com` for all hosts below it; ports 80 and 443
 * unless a port is given; any protocol if `/tcp` follows the port.
 */
export interface EgressRule {
  readonly host: string;
  /** Matches every host below `host`, and not `host` itself. */
  readonly below: boolean;
  /** Null: 80 and 443. */
  readonly port: number | null;
  /**
   * Whether the connection may carry any protocol. Otherwise it must be TLS whose server name indication is this host,
   * unencrypted, or HTTP for this host: many hosts may share one address.
   */
  readonly anyProtocol: boolean;
}

const usualPorts: ReadonlySet<number> = new Set([80, 443]);
const name = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/u;

/**
 * Parses `example.com`, `*.example.com`, `example.com:8443`, `example.com:5432/tcp`, `192.0.2.1:443`,
 * `[2001:db8::1]:443`; null for any other text.
 */
export function parseEgressRule(text: string): EgressRule | null {
  const [, below, bracketed, plain, port, tcp] =
    /^(\*\.)?(?:\[([0-9a-f:.]+)\]|([^:[\]/@\s]+))(?::(\d{1,5})(\/tcp)?)?$/u.exec(text.trim().toLowerCase()) ?? [];
  const host = canonicalHost(bracketed === undefined ? (plain ?? "") : `[${bracketed}]`);
  if (host === null) return null;
  const number = port === undefined ? null : Number(port);
  if (number !== null && (number < 1 || number > 65_535)) return null;
  return { host, below: below !== undefined, port: number, anyProtocol: tcp !== undefined };
}

/** Characters of a host; longer than any valid name (RFC 1035, section 2.3.4: 255 octets). */
const longestHost = 300;

/**
 * The host as URLs are parsed (WHATWG URL): lower case, without the root's dot, `0x7f.1` as 127.0.0.1, IPv6 in its
 * short form without brackets; null if it is not a host.
 */
export function canonicalHost(host: string): string | null {
  const hostname = host.length > longestHost ? null : (URL.parse(`http://${host}/`)?.hostname ?? null);
  if (hostname === null) return null;
  const canonical = hostname.replace(/^\[|\]$/gu, "").replace(/\.$/u, "");
  return canonical.includes(":") || name.test(canonical) ? canonical : null;
}

/** The rules that allow a host to be reached at a port. @param host canonical, see `canonicalHost` */
export function egressRulesFor(rules: readonly EgressRule[], host: string, port: number): EgressRule[] {
  return rules.filter((rule) => {
    if (rule.port === null ? !usualPorts.has(port) : rule.port !== port) return false;
    return rule.below ? host.endsWith(`.${rule.host}`) : host === rule.host;
  });
}

/** Named sets of rules: no host, the package registries of `registryHosts`, every public host. */
export const egressPresets = ["none", "registries", "open"] as const;
/** See `egressPresets`. */
export type EgressPreset = (typeof egressPresets)[number];

/** An entry of a list of hosts that sandboxes may reach: see `parseEgressRule`, or a preset. */
export const egressRuleSchema = z
  .string()
  .max(300)
  .refine(
    (text) => isPreset(text) || parseEgressRule(text) !== null,
    "must be written <host>, *.<host>, <host>:<port> or <host>:<port>/tcp, or be registries or open",
  );

function isPreset(text: string): text is EgressPreset {
  return text === "registries" || text === "open";
}

/** Hosts that a sandbox may reach. */
export interface EgressPolicy {
  /** True allows every public host. */
  readonly open: boolean;
  readonly rules: readonly EgressRule[];
}

/** A policy extended by further entries (hosts and presets). Entries can only extend it; invalid ones are ignored. */
export function widenEgress(policy: EgressPolicy, entries: readonly string[]): EgressPolicy {
  const presets = new Set(entries.filter(isPreset));
  const hosts = entries.filter((entry) => !isPreset(entry)).map(parseEgressRule);
  return {
    open: policy.open || presets.has("open"),
    rules: [
      ...policy.rules,
      ...(presets.has("registries") ? registryHosts : []),
      ...hosts.filter((rule) => rule !== null),
    ],
  };
}

/** Preset `registries`: package registries of the common languages and Linux distributions. */
export const registryHosts: readonly EgressRule[] = [
  "registry.npmjs.org",
  "registry.yarnpkg.com",
  "jsr.io",
  "npm.jsr.io",
  "pypi.org",
  "files.pythonhosted.org",
  "crates.io",
  "index.crates.io",
  "static.crates.io",
  "proxy.golang.org",
  "sum.golang.org",
  "rubygems.org",
  "index.rubygems.org",
  "repo.maven.apache.org",
  "repo1.maven.org",
  "plugins.gradle.org",
  "repo.packagist.org",
  "packagist.org",
  "api.nuget.org",
  "hex.pm",
  "repo.hex.pm",
  "pub.dev",
  "deb.debian.org",
  "security.debian.org",
  "archive.ubuntu.com",
  "security.ubuntu.com",
  "dl-cdn.alpinelinux.org",
].map((host) => ({ host, below: false, port: null, anyProtocol: false }));
