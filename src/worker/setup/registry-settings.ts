import type { Gateway } from "../../gateway/gateway.ts";
import { registryAddress } from "../../domain/environments/registry.ts";
import { gatewayOrigin } from "../../sandboxes/process/relay.ts";
import { trustVariables } from "../../sandboxes/authorities.ts";
import type { SandboxRequest } from "../../sandboxes/sandbox.ts";
import type { FileOver, FilePart, HomeFiles } from "../sandboxed/harness-files.ts";
import type { OpenedRegistry } from "../../store/secrets/registries.ts";

/** A sandbox's settings with which its package tools install from private registries; none of them is secret. */
export interface RegistrySettings extends Pick<SandboxRequest, "environment" | "readOnly"> {
  readonly files: HomeFiles;
}

/** Folder below the home of our own files for tools. */
const folder = ".offstage/registries";

/**
 * Settings of package tools for a session's registries. They are the tools' weakest ones: what a repository, its setup or its
 * image says goes before them, and stays.
 * @param home as the sandbox sees it
 */
export function registrySettings(
  registries: readonly Omit<OpenedRegistry, "token">[],
  gateway: Pick<Gateway, "authoritiesFile" | "registryAt">,
  home: string,
): RegistrySettings {
  const { authoritiesFile } = gateway;
  const parts = registries.map((registry) => settingsOf(registry, gateway, `${home}/${folder}`));
  const npm = registries.filter(({ kind }) => kind === "npm");
  const npmrc = npm.map(({ scope, url }) => `${scope === null ? "" : `${scope}:`}registry=${url}\n`).join("");
  return {
    environment: Object.assign(
      {},
      authoritiesFile === null ? {} : trustVariables(authoritiesFile),
      npmrc === "" ? {} : { NPM_CONFIG_GLOBALCONFIG: `${home}/${folder}/npmrc` },
      ...parts.map(({ environment }) => environment),
    ) as Record<string, string>,
    readOnly: authoritiesFile === null ? [] : [authoritiesFile],
    files: Object.assign(
      {},
      removed,
      npmrc === "" ? {} : { [`${folder}/npmrc`]: npmSettings(npmrc), ...yarnSettings(npm) },
      ...parts.map(({ files }) => files),
    ) as HomeFiles,
  };
}

/** Parts of a person's files, which a registry leaves in a home if it is deleted. */
const removed: HomeFiles = Object.fromEntries(
  [".cargo/config.toml", ".config/go/env", ".config/pip/pip.conf", ".config/uv/uv.toml", ".yarnrc", ".yarnrc.yml"].map(
    (path) => [path, { part: "", unless: "^", ...(path === ".cargo/config.toml" && { instead: ".cargo/config" }) }],
  ),
);

type Settings = Pick<RegistrySettings, "environment" | "files">;

function settingsOf(
  { id, kind, url, scope }: Omit<OpenedRegistry, "token">,
  { registryAt }: Pick<Gateway, "registryAt">,
  ours: string,
): Settings {
  const bare = url.replace(/\/$/u, "");
  switch (kind) {
    case "npm":
      // The settings for all of them are in separate files: see `npmSettings` and `yarnSettings`.
      return { environment: {}, files: {} };
    case "pypi":
      return { environment: {}, files: pythonSettings(url) };
    case "go":
      return { environment: {}, files: { ".config/go/env": goSettings(bare, scope) } };
    case "cargo":
      return cargoSettings(url, scope);
    case "maven":
      // Java trusts no certificate by a variable: Maven asks the gateway itself, on loopback.
      return {
        environment: {
          MAVEN_ARGS: `--global-settings ${ours}/maven-settings.xml`,
          OFFSTAGE_MAVEN_URL: registryAt(gatewayOrigin, id),
        },
        files: { [`${folder}/maven-settings.xml`]: mavenSettings },
      };
    case "nuget":
      return { environment: {}, files: nugetSettings(registryAddress(url)) };
    case "rubygems":
      return rubySettings(url, ours);
  }
}

/**
 * npm's global file. Of several lines that say the same, the last counts: the image's own. But not which certificates
 * it trusts: npm would then trust no others, and the gateway, which answers for the registry, is not among them. The
 * variables name all trusted certificates.
 */
function npmSettings(lines: string): FileOver {
  return {
    over: [
      { variable: "NPM_CONFIG_GLOBALCONFIG", path: "." },
      { program: "node", path: "../etc/npmrc" },
      { path: "/etc/npmrc" },
      { path: "/usr/local/etc/npmrc" },
    ],
    without: lines,
    ignored: String.raw`(?:^|\n)[ \t]*(?:cafile|ca(?:\[\])?)[ \t]*=[^\n]*`,
    insertions: [{ before: "^", text: lines }],
  };
}

/**
 * Yarn's files in a home, which count less than all of a repository's own: that of Yarn 1, and that of later ones
 * (https://yarnpkg.com/configuration/yarnrc). Yarn does not read npm's global file; pnpm does.
 */
function yarnSettings(registries: readonly Pick<OpenedRegistry, "url" | "scope">[]): HomeFiles {
  const classic = registries.map(
    ({ url, scope }) => `${scope === null ? "registry" : `"${scope}:registry"`} "${url}"\n`,
  );
  const server = ({ url }: Pick<OpenedRegistry, "url">): string =>
    `npmRegistryServer: ${JSON.stringify(url.replace(/\/$/u, ""))}\n`;
  const scoped = registries.flatMap(({ url, scope }) =>
    scope === null ? [] : [`  ${JSON.stringify(scope.slice(1))}:\n    ${server({ url })}`],
  );
  const later = [
    ...registries.filter(({ scope }) => scope === null).map(server),
    ...(scoped.length === 0 ? [] : ["npmScopes:\n", ...scoped]),
  ];
  return {
    ".yarnrc": { part: classic.join(""), unless: String.raw`^\s*"?(?:@[^\s":]+:)?registry"?\s` },
    ".yarnrc.yml": { part: later.join(""), unless: String.raw`^["']?(?:npmRegistryServer|npmScopes)["']?\s*:` },
  };
}

/**
 * Python's tools. A variable would go before their files, so it is a person's own file: the one that also programs read to
 * which no variables are passed on, such as those of tox.
 */
function pythonSettings(url: string): HomeFiles {
  return {
    ".config/pip/pip.conf": {
      part: `index-url = ${url}\n`,
      section: "[global]",
      unless: String.raw`^\s*index[-_]url\s*[=:]`,
      beside: [".pip/pip.conf", "/etc/pip.conf", "/etc/xdg/pip/pip.conf"],
    },
    // https://docs.astral.sh/uv/concepts/configuration-files
    ".config/uv/uv.toml": {
      part: `[[index]]\nurl = "${url}"\ndefault = true\n`,
      unless: String.raw`^\s*(?:\[\[\s*index\s*\]\]|(?:index|index-url|default-index)\s*=)`,
      beside: ["/etc/uv/uv.toml", "/etc/xdg/uv/uv.toml"],
    },
  };
}

/**
 * Go's own file of what would be variables (https://pkg.go.dev/cmd/go, "go env -w"): a variable would go before it. Modules that
 * only members get are in no public database of checksums, and Go builds none of which it is not there: without a scope any can
 * be such a module, and the registry answers for all of them.
 */
function goSettings(proxy: string, scope: string | null): FilePart {
  const part =
    scope === null
      ? `GONOSUMDB=*\nGOPROXY=${proxy}\n`
      : `GONOSUMDB=${scope}\nGOPROXY=${proxy},https://proxy.golang.org\n`;
  return { part, unless: "^(?:GOPROXY|GONOSUMDB|GOSUMDB|GOPRIVATE)=" };
}

/**
 * Ruby's tools. Of several files that GEMRC names, the last that says something counts, so a person's and the image's own come
 * after ours; they count less if the variable does not name them. Bundler asks a mirror of an address before one of a host.
 */
function rubySettings(url: string, ours: string): Settings {
  const home = ours.slice(0, -folder.length - 1);
  const gemrc = [`${ours}/gemrc`, "/etc/gemrc", `${home}/.config/gem/gemrc`, `${home}/.gemrc`].join(":");
  return {
    environment: { GEMRC: gemrc, BUNDLE_MIRROR__RUBYGEMS__ORG: url },
    files: { [`${folder}/gemrc`]: `---\n:sources:\n- ${url}\n` },
  };
}

/** Cargo asks for a token before it asks a registry that needs one; the gateway puts the true one in its place. */
function cargoSettings(url: string, scope: string | null): Settings {
  const name = scope ?? "offstage";
  const variable = `CARGO_REGISTRIES_${name.toUpperCase().replaceAll("-", "_")}`;
  const environment = {
    [`${variable}_INDEX`]: `sparse+${url}`,
    [`${variable}_TOKEN`]: "by-the-gateway",
    // cargo does not ask an index that requires a token unless a credential provider is set.
    [`${variable}_CREDENTIAL_PROVIDER`]: "cargo:token",
  };
  if (scope !== null) return { environment, files: {} };
  // Cargo reads the place of crates.io from files alone.
  const replaced = `[source.crates-io]\nreplace-with = "offstage"\n\n[source.offstage]\nregistry = "sparse+${url}"\n`;
  const part: FilePart = { part: replaced, unless: ownCratesIo, instead: ".cargo/config" };
  return { environment, files: { ".cargo/config.toml": part } };
}

/** Existing settings, in TOML, that name the address of crates.io. */
const ownCratesIo = String.raw`^\s*(?:\[\s*source\s*\]|\[?\s*source\s*\.\s*["']?crates-io["']?\s*[\].=])`;

const mavenMirror = "<mirror><id>offstage</id><mirrorOf>*</mirrorOf><url>${env.OFFSTAGE_MAVEN_URL}</url></mirror>";

/** Maven's global file. Of several mirrors that fit, the first counts: the image's own. */
const mavenSettings: FileOver = {
  over: [
    { variable: "MAVEN_HOME", path: "conf/settings.xml" },
    { program: "mvn", path: "../conf/settings.xml" },
  ],
  without: `<settings><mirrors>${mavenMirror}</mirrors></settings>\n`,
  ignored: "<!--[^]*?-->",
  insertions: [
    { before: "</mirrors\\s*>", text: mavenMirror },
    { before: "</settings\\s*>", text: `<mirrors>${mavenMirror}</mirrors>` },
  ],
};

/**
 * A user's additional file, which hides no other. Its path depends on the tool: .NET's reads the first, NuGet's own on
 * Mono the second (https://learn.microsoft.com/nuget/consume-packages/configuring-nuget-behavior).
 */
function nugetSettings(url: string): HomeFiles {
  const source = url.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const settings = `<?xml version="1.0" encoding="utf-8"?>
<configuration>
  <packageSources>
    <add key="offstage" value="${source}" />
  </packageSources>
</configuration>
`;
  return { ".nuget/config/offstage.config": settings, ".config/NuGet/config/offstage.config": settings };
}
