import { z } from "zod";

/** A host, or with `*.` before it all below it; with a port, else 80 and 443; with `/tcp` behind the port any protocol. */
export interface EgressRule {
  readonly host: string;
  /** Also every name below `host`, and not `host` itself. */
  readonly below: boolean;
  readonly port: number | null;
  /**
   * Whether a connection may carry anything. Otherwise it must be TLS that names this host in the clear, or HTTP for this
   * host: an address is often shared by the hosts of many.
   */
  readonly anyProtocol: boolean;
}

const usualPorts: ReadonlySet<number> = new Set([80, 443]);
const name = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/u;

/**
 * Reads `example.com`, `*.example.com`, `example.com:8443`, `example.com:5432/tcp`, `192.0.2.1:443`, `[2001:db8::1]:443`;
 * null for anything else.
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

/** No name of a host is near to it (RFC 1035, section 2.3.4: 255 octets). */
const longestHost = 300;

/** As URLs are read: lower case, without a last dot, `0x7f.1` as 127.0.0.1, IPv6 short and without brackets. */
export function canonicalHost(host: string): string | null {
  const hostname = host.length > longestHost ? null : hostnameOf(`http://${host}/`);
  if (hostname === null) return null;
  const canonical = hostname.replace(/^\[|\]$/gu, "").replace(/\.$/u, "");
  return canonical.includes(":") || name.test(canonical) ? canonical : null;
}

/** `URL.canParse` takes some texts that `new URL` then refuses. */
function hostnameOf(url: string): string | null {
  try {
    return new URL(url).hostname;
  } catch {
    return null;
  }
}

/** Those of the rules that let a host be reached at a port. */
export function egressRulesFor(rules: readonly EgressRule[], host: string, port: number): EgressRule[] {
  return rules.filter((rule) => {
    if (rule.port === null ? !usualPorts.has(port) : rule.port !== port) return false;
    return rule.below ? host.endsWith(`.${rule.host}`) : host === rule.host;
  });
}

export const egressPresets = ["none", "registries", "open"] as const;
export type EgressPreset = (typeof egressPresets)[number];

/** One entry of an organization's or repository's list: a host, or a preset. */
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

export interface EgressPolicy {
  /** True lets every public host be reached. */
  readonly open: boolean;
  readonly rules: readonly EgressRule[];
}

/** A policy with the entries of further lists, hosts and presets, which can only widen it. */
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

/** Where packages of the common languages and systems come from. */
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
