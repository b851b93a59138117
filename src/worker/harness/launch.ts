import { createHash } from "node:crypto";
import type { HarnessLaunch, Provider } from "../../agents/harness.ts";
import { modelsSeenFrom, type Gateway } from "../../gateway/gateway.ts";
import { gatewayOrigin } from "../../sandboxes/process/relay.ts";
import type { SandboxRequest } from "../../sandboxes/sandbox.ts";
import type { OpenedRegistry } from "../../store/secrets/registries.ts";
import type { AttemptServices } from "../attempt/attempt.ts";
import { authorVariables } from "../git/git.ts";
import type { HomeFiles } from "../sandboxed/harness-files.ts";
import { registrySettings } from "../setup/registry-settings.ts";

/** All that decides how a harness is started, except the sandbox's own folders and its gateway. */
export interface Launch {
  readonly provider: Provider;
  /** Null: the harness chooses. */
  readonly model: string | null;
  readonly reasoning: string | null;
  /** Environment variables from the repositories' settings and secrets. */
  readonly variables: Readonly<Record<string, string>>;
  readonly registries: readonly OpenedRegistry[];
  /** Root file system of the agent's sandbox; null: the server's own. */
  readonly image: string | null;
}

/** The worker's services that decide it, too. */
export type LaunchServices = Pick<AttemptServices, "models" | "limits" | "author" | "committer">;

/** A launch in a sandbox's place. */
export interface PlacedLaunch {
  readonly harness: HarnessLaunch;
  /** Files to write in the home before the start, by relative path. */
  readonly files: HomeFiles;
  /** The request that starts the harness, without the parts of its place. */
  readonly request: Pick<SandboxRequest, "command" | "arguments" | "environment" | "readOnly" | "image" | "limits">;
}

/**
 * Returns the request that starts a harness in a sandbox.
 * @param home the session's, as the sandbox sees it
 */
export function placeLaunch(
  launch: Launch,
  { limits, author, committer }: Omit<LaunchServices, "models">,
  home: string,
  gateway: Pick<Gateway, "modelsAt" | "authoritiesFile" | "registryAt">,
): PlacedLaunch {
  const { provider, model, reasoning, variables, registries, image } = launch;
  const harness = provider.launch({ model, reasoning, home, models: gateway.modelsAt(gatewayOrigin) });
  const installs = registrySettings(registries, gateway, home);
  return {
    harness,
    files: { ...installs.files, ...harness.files },
    request: {
      command: harness.command,
      arguments: harness.arguments,
      environment: {
        HOME: home,
        LANG: "C.UTF-8",
        TERM: "dumb",
        ...authorVariables(author, committer),
        ...installs.environment,
        ...variables,
        ...harness.environment,
      },
      readOnly: [...harness.readOnly, ...installs.readOnly],
      ...(image !== null && { image }),
      limits,
    },
  };
}

/**
 * A digest of a launch: equal for launches that start the same program in the same way. What is each sandbox's own, its home and its
 * token, has a name in its place.
 */
export function launchKey(launch: Launch, services: LaunchServices): string {
  const { harness, files, request } = placeLaunch(launch, services, "/{home}", {
    modelsAt: (origin) => modelsSeenFrom(origin, services.models, "{token}"),
    authoritiesFile: launch.registries.length === 0 ? null : "/{authorities}",
    registryAt: (origin, id) => `${origin}/{registry}/${id}`,
  });
  const { model, reasoning, extensions } = harness;
  const text = JSON.stringify(sorted({ provider: launch.provider.id, model, reasoning, extensions, files, request }));
  return createHash("sha256").update(text).digest("hex");
}

/** The same value with the names of each object in their order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]));
}
