import type { Gateway } from "../../gateway/gateway.ts";
import { gatewayOrigin } from "../../sandboxes/process/relay.ts";
import { trustVariables } from "../../sandboxes/authorities.ts";
import type { SandboxRequest } from "../../sandboxes/sandbox.ts";
import type { FilePart, HomeFiles } from "../sandboxed/harness-files.ts";
import type { OpenedRegistry } from "../../store/secrets/registries.ts";

/** What a sandbox needs so that its package tools install from private registries; nothing in it is secret. */
export interface RegistrySettings extends Pick<SandboxRequest, "environment" | "readOnly"> {
  readonly files: HomeFiles;
}

/** Folder below the home of our own files for tools. */
const folder = ".offstage/registries";

/**
 * Settings of package tools for a session's registries. They are the tools' weakest ones, if a tool has several: what a
 * repository or a person set goes before them.
 * @param home as the sandbox sees it
 */
export function registrySettings(
  registries: readonly Omit<OpenedRegistry, "token">[],
  gateway: Pick<Gateway, "authoritiesFile" | "registryAt">,
  home: string,
): RegistrySettings {
  const { authoritiesFile } = gateway;
  const parts = registries.map((registry) => settingsOf(registry, gateway, `${home}/${folder}`));
  const npmrc = registries.flatMap(({ kind, scope, url }) =>
    kind === "npm" ? [`${scope === null ? "" : `${scope}:`}registry=${url}\n`] : [],
  );
  return {
    environment: Object.assign(
      {},
      authoritiesFile === null ? {} : trustVariables(authoritiesFile),
      npmrc.length === 0 ? {} : { NPM_CONFIG_GLOBALCONFIG: `${home}/${folder}/npmrc` },
      ...parts.map(({ environment }) => environment),
    ) as Record<string, string>,
    readOnly: authoritiesFile === null ? [] : [authoritiesFile],
    files: Object.assign(
      {},
      npmrc.length === 0 ? {} : { [`${folder}/npmrc`]: npmrc.join("") },
      ...parts.map(({ files }) => files),
    ) as HomeFiles,
  };
}

type Settings = Pick<RegistrySettings, "environment" | "files">;

function settingsOf(
  { id, kind, url, scope }: Omit<OpenedRegistry, "token">,
  { registryAt }: Pick<Gateway, "registryAt">,
  ours: string,
): Settings {
  const bare = url.replace(/\/$/u, "");
  switch (kind) {
    case "npm":
      return { environment: scope === null ? { YARN_NPM_REGISTRY_SERVER: bare } : {}, files: {} };
    case "pypi":
      return { environment: { PIP_INDEX_URL: url, UV_DEFAULT_INDEX: url }, files: {} };
    case "go":
      return scope === null
        ? { environment: { GOPROXY: bare }, files: {} }
        : { environment: { GOPROXY: `${bare},https://proxy.golang.org`, GONOSUMDB: scope }, files: {} };
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
      return {
        environment: { NUGET_COMMON_APPLICATION_DATA: ours },
        files: { [`${folder}/NuGet/Config/offstage.config`]: nugetSettings(url) },
      };
    case "rubygems":
      return {
        environment: { GEMRC: `${ours}/gemrc`, BUNDLE_USER_CONFIG: `${ours}/bundle` },
        files: {
          [`${folder}/gemrc`]: `---\n:sources:\n- ${url}\n`,
          [`${folder}/bundle`]: `---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: "${url}"\n`,
        },
      };
  }
}

/** Cargo asks for a token before it asks a registry that needs one; the gateway puts the true one in its place. */
function cargoSettings(url: string, scope: string | null): Settings {
  const name = scope ?? "offstage";
  const variable = `CARGO_REGISTRIES_${name.toUpperCase().replaceAll("-", "_")}`;
  const environment = {
    [`${variable}_INDEX`]: `sparse+${url}`,
    [`${variable}_TOKEN`]: "by-the-gateway",
    // An index that says it needs a token is not asked at all unless somebody says where tokens come from.
    [`${variable}_CREDENTIAL_PROVIDER`]: "cargo:token",
  };
  if (scope !== null) return { environment, files: {} };
  // Cargo reads the place of crates.io from files alone.
  const replaced = `[source.crates-io]\nreplace-with = "offstage"\n\n[source.offstage]\nregistry = "sparse+${url}"\n`;
  const part: FilePart = { part: replaced, unless: ownCratesIo };
  return { environment, files: { ".cargo/config.toml": part } };
}

/** In TOML, the settings of somebody who says themselves where crates.io is. */
const ownCratesIo = String.raw`^\s*(?:\[\s*source\s*\]|\[?\s*source\s*\.\s*["']?crates-io["']?\s*[\].=])`;

const mavenSettings = `<settings>
  <mirrors>
    <mirror>
      <id>offstage</id>
      <mirrorOf>*</mirrorOf>
      <url>\${env.OFFSTAGE_MAVEN_URL}</url>
    </mirror>
  </mirrors>
</settings>
`;

const nugetSettings = (url: string): string => `<?xml version="1.0" encoding="utf-8"?>
<configuration>
  <packageSources>
    <add key="offstage" value="${url.replaceAll("&", "&amp;").replaceAll('"', "&quot;")}" />
  </packageSources>
</configuration>
`;
