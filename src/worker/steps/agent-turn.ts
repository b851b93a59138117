import { sampleUsage } from "./sample-usage.ts";
import { join } from "node:path";
import { runTurn } from "../../agents/acp/acp.ts";
import type { HarnessLaunch, Provider, TurnResult } from "../../agents/harness.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { gatewayOrigin } from "../../sandboxes/process/relay.ts";
import type { SandboxedProcess } from "../../sandboxes/sandbox.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { foldersOf } from "../attempt/session-repositories.ts";
import type { MadeAt } from "../disk/session-folders.ts";
import { authorVariables } from "../git/git.ts";
import { writeHarnessFiles } from "../sandboxed/harness-files.ts";
import { registrySettings, type RegistrySettings } from "../setup/registry-settings.ts";
import type { ToolServer } from "../tools/session-tools.ts";
import { secretsFor, type RepositoryEnvironment } from "../setup/repository-environment.ts";

/** What one turn of an agent needs. */
export interface AgentTurn {
  readonly provider: Provider;
  /** Null: the harness chooses. */
  readonly model: string | null;
  readonly reasoning: string | null;
  readonly gateway: Gateway;
  /** Programs that offer the agent tools, which its harness starts. */
  readonly toolServers: readonly ToolServer[];
  /** Environment variables from the repositories' settings and secrets. */
  readonly variables: Readonly<Record<string, string>>;
  /** Root file system of the agent's sandbox; null: the server's own. */
  readonly image: string | null;
  readonly message: string;
  /** The conversation so far, sent before the message if the harness can't resume; null if there is none. */
  readonly transcript: string | null;
  /** The harness's session to resume; null if there was no turn before. */
  readonly resume: string | null;
  /** Called with the harness's session id, to be stored for the next turn. */
  readonly onSession: (harnessSessionId: string) => Promise<void>;
  /** Paths at which the agent sees the session's folders, if not those recorded for the session. */
  readonly seenAt?: MadeAt;
  readonly signal: AbortSignal;
}

/** What turns need of the worker. */
export type TurnServices = Pick<
  AttemptServices,
  | "traces"
  | "folders"
  | "mirrors"
  | "sandbox"
  | "limits"
  | "author"
  | "committer"
  | "stallMs"
  | "turnLimitMs"
  | "permissions"
>;

/** What a turn needs of its attempt. */
export type TurnAttempt = Pick<Attempt, "session" | "registries" | "mask" | "emit" | "logger">;

/**
 * Runs one turn of the session's agent in its sandbox.
 * @throws SessionError if the turn fails
 */
export function agentTurn(attempt: TurnAttempt, services: TurnServices, turn: AgentTurn): Promise<TurnResult> {
  const { provider, model } = turn;
  const attributes = { "offstage.agent": provider.id, ...(model !== null && { "offstage.model": model }) };
  return services.traces.span("turn", { attributes }, () => takeTurn(attempt, services, turn));
}

async function takeTurn(attempt: TurnAttempt, services: TurnServices, turn: AgentTurn): Promise<TurnResult> {
  const { provider, model, reasoning, gateway } = turn;
  const folders = await turnFoldersOf(attempt, services, turn.seenAt);
  const models = gateway.modelsAt(gatewayOrigin);
  const launch = provider.launch({ model, reasoning, home: folders.seenAt.home, models });
  const installs = registrySettings(attempt.registries, gateway, folders.seenAt.home);
  const files = { ...installs.files, ...launch.files };
  await writeHarnessFiles(services.sandbox, { ...folders.paths, signal: turn.signal }, files);
  return runTurn({
    provider,
    model,
    launch,
    start: (requested, ended) => {
      const child = startHarness(services, requested, { ...turn, folders, installs, ended });
      sampleUsage(child, attempt, services.limits.memoryBytes);
      return child;
    },
    workingDirectory: folders.workingDirectory,
    toolServers: turn.toolServers,
    resume: turn.resume,
    message: turn.message,
    transcript: turn.transcript,
    emit: attempt.emit,
    onSession: turn.onSession,
    stallMs: services.stallMs,
    limitMs: services.turnLimitMs,
    permission: services.permissions,
    mask: attempt.mask,
    traffic: gateway.traffic,
    signal: turn.signal,
  });
}

/** The agent's environment variables from the repositories' settings and secrets; the first repository's override others. */
export function variablesOf(
  { secrets }: Pick<Attempt, "secrets">,
  environments: readonly RepositoryEnvironment[],
): Record<string, string> {
  const ofRepositories = environments.toReversed().map(({ clone, variables }) => ({
    ...variables,
    ...secretsFor(secrets, "agent", clone.repository.id),
  }));
  return Object.assign({}, secretsFor(secrets, "agent", ""), ...ofRepositories) as Record<string, string>;
}

type TurnFolders = Awaited<ReturnType<typeof turnFoldersOf>>;

/**
 * The session's folders as its agent sees them.
 * @param seenAt paths at which it sees them; undefined: those recorded for the session
 */
export async function turnFoldersOf(
  { session }: Pick<Attempt, "session">,
  services: Pick<AttemptServices, "folders" | "mirrors">,
  seenAt: MadeAt | undefined,
) {
  const { repositories, sessionId } = session;
  const paths = foldersOf(session, services);
  const seen = seenAt ?? (await services.folders.seenAt(sessionId));
  const moved =
    seen.workspace === paths.workspace
      ? []
      : [
          { path: seen.workspace, folder: paths.workspace },
          { path: seen.home, folder: paths.home },
        ];
  // With one repository the agent starts in its clone; with more, in the workspace that holds them.
  const [only, ...others] = repositories;
  const alone = only === undefined || others.length > 0 ? null : only.directory;
  return {
    paths,
    seenAt: { workspace: seen.workspace, home: seen.home },
    aliases: [...(await services.folders.aliases(sessionId)), ...moved],
    workingDirectory: alone === null ? seen.workspace : join(seen.workspace, alone),
  };
}

function startHarness(
  { sandbox, limits, author, committer }: Pick<AttemptServices, "sandbox" | "limits" | "author" | "committer">,
  launch: HarnessLaunch,
  {
    gateway,
    variables,
    image,
    folders,
    installs,
    signal,
    ended,
  }: AgentTurn & {
    readonly folders: TurnFolders;
    readonly installs: RegistrySettings;
    readonly ended: AbortSignal;
  },
): SandboxedProcess {
  const { paths, seenAt, aliases, workingDirectory } = folders;
  return sandbox.start({
    command: launch.command,
    arguments: launch.arguments,
    environment: {
      HOME: seenAt.home,
      LANG: "C.UTF-8",
      TERM: "dumb",
      ...authorVariables(author, committer),
      ...installs.environment,
      ...variables,
      ...launch.environment,
    },
    workspace: paths.workspace,
    workingDirectory,
    home: paths.home,
    disk: paths.disk,
    readOnly: [...launch.readOnly, ...paths.readOnly, ...installs.readOnly],
    aliases,
    ...(image !== null && { image }),
    gateway: gateway.socket,
    limits,
    signal: AbortSignal.any([signal, ended]),
  });
}
