import { realpathSync } from "node:fs";
import { join } from "node:path";
import { runTurn } from "../../../agents/acp/acp.ts";
import type { TurnRequest, TurnResult } from "../../../agents/harness.ts";
import type { Gateway } from "../../../gateway/gateway.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { isFailure } from "../../attempt/end.ts";
import { foldersOf } from "../../attempt/session-repositories.ts";
import type { SessionPaths } from "../../disk/session-folders.ts";
import type { EarlyStart } from "../../harness/begin-early.ts";
import type { EarlyHarness } from "../../harness/early-harness.ts";
import { placeLaunch, type Launch } from "../../harness/launch.ts";
import { writeHarnessFiles } from "../../sandboxed/harness-files.ts";
import { secretsFor } from "../../setup/repository-environment.ts";
import type { ToolServer } from "../../tools/session-tools.ts";
import { sampleUsage } from "./sample-usage.ts";

/** Dependencies of one turn of an agent. */
export interface AgentTurn extends Omit<Launch, "registries"> {
  readonly gateway: Gateway;
  /** Programs that offer the agent tools, which its harness starts. */
  readonly toolServers: readonly ToolServer[];
  readonly message: string;
  /** The conversation so far, sent before the message if the harness can't resume; null if there is none. */
  readonly transcript: string | null;
  /** The harness's session to resume; null if there was no turn before. */
  readonly resume: string | null;
  /** Called with the harness's session id, to be stored for the next turn. */
  readonly onSession: (harnessSessionId: string) => Promise<void>;
  /** Paths at which the agent sees the session's folders, if not those recorded for the session. */
  readonly visiblePaths?: SessionPaths;
  /** The harness, if it runs already, with the gateway adopted for the session; null or omitted: it is started. */
  readonly early?: { readonly harness: EarlyHarness; readonly began: EarlyStart["began"] } | null;
  readonly signal: AbortSignal;
}

/** Services of the worker for turns. */
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

/** The attempt's fields for a turn. */
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
  const { provider, gateway } = turn;
  const folders = await turnFoldersOf(attempt, services, turn.visiblePaths);
  const { mask, emit } = attempt;
  const request = {
    provider,
    model: turn.model,
    workingDirectory: folders.workingDirectory,
    toolServers: turn.toolServers,
    resume: turn.resume,
    message: turn.message,
    transcript: turn.transcript,
    emit,
    onSession: turn.onSession,
    stallMs: services.stallMs,
    limitMs: services.turnLimitMs,
    permission: services.permissions,
    mask,
    traffic: gateway.traffic,
    signal: turn.signal,
  };
  const early = turn.early ?? null;
  const launch = { ...turn, registries: attempt.registries };
  const { harness, files, request: started } = placeLaunch(launch, services, folders.visiblePaths.home, gateway);
  // A harness that was started early has its files; a setup may have put others into the home since.
  if (early === null || folders.wasSetUp)
    await writeHarnessFiles(services.sandbox, { ...folders.paths, signal: turn.signal }, files);
  const taken = early === null ? null : await takeEarly(attempt, services, early, folders, request);
  if (taken !== null) return taken;
  return runTurn({
    ...request,
    launch: harness,
    start(_launch, ended) {
      const child = services.sandbox.start({
        ...started,
        ...folders.paths,
        readOnly: [...started.readOnly, ...folders.paths.readOnly],
        workingDirectory: folders.workingDirectory,
        aliases: folders.aliases,
        gateway: gateway.socket,
        signal: AbortSignal.any([turn.signal, ended]),
      });
      sampleUsage(child, attempt, services.limits.memoryBytes);
      return child;
    },
  });
}

/** A harness that is ready opens its session within seconds: one that does not is given up. */
const readyLimitMs = 30_000;

/**
 * Takes the turn with a harness that runs already: gives its sandbox the session's folders first.
 * @returns null if it did not begin the turn, so that another harness can
 */
async function takeEarly(
  attempt: Pick<TurnAttempt, "logger" | "emit">,
  { limits }: Pick<TurnServices, "limits">,
  { harness: early, began }: NonNullable<AgentTurn["early"]>,
  { paths, aliases }: TurnFolders,
  request: Omit<TurnRequest, "launch" | "start">,
): Promise<TurnResult | null> {
  const { workspace, home, disk, readOnly } = paths;
  // It has its home already, if it was started in the session's own.
  const own = [workspace, home]
    .filter((folder) => folder !== early.folders.home)
    .map((folder) => ({ folder, place: folder, isReadOnly: false }));
  const mirrors = readOnly.flatMap((folder) =>
    [...new Set([folder, realpathSync(folder)])].map((place) => ({ folder, place, isReadOnly: true })),
  );
  // It sees its home where it was started, and needs no other name for that.
  const others = aliases
    .filter(({ path }) => path !== early.folders.home)
    .map(({ path, folder }) => ({ folder, place: path, isReadOnly: false }));
  try {
    await early.attach({ mounts: [...own, ...mirrors, ...others], home, disk });
    sampleUsage(early, attempt, limits.memoryBytes);
    const result = await early.harness.takeTurn({ ...request, launch: early.launch.harness }, readyLimitMs);
    began("begun");
    return result;
  } catch (error) {
    await early.stop();
    const hasBegun = early.harness.hasBegun();
    began(hasBegun ? "begun" : "failed");
    if (hasBegun || !isFailure(error, request.signal)) throw error;
    attempt.logger.warn(
      { err: error },
      "the agent's program that was started early could not take the turn; another is started",
    );
    return null;
  }
}

/** The agent's environment variables from the repositories' settings and secrets; the first repository's override others. */
export function variablesOf(
  { secrets }: Pick<Attempt, "secrets">,
  environments: readonly {
    readonly clone: { readonly repository: { readonly id: string } };
    readonly variables: Readonly<Record<string, string>>;
  }[],
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
 * @param visiblePaths paths at which it sees them; undefined: those recorded for the session
 */
export async function turnFoldersOf(
  { session }: Pick<Attempt, "session">,
  services: Pick<AttemptServices, "folders" | "mirrors">,
  visiblePaths: SessionPaths | undefined,
) {
  const { repositories, sessionId } = session;
  const paths = foldersOf(session, services);
  const seen = visiblePaths ?? (await services.folders.visiblePaths(sessionId));
  const moved = [
    { path: seen.workspace, folder: paths.workspace },
    { path: seen.home, folder: paths.home },
  ].filter(({ path, folder }) => path !== folder);
  // With one repository the agent starts in its clone; with more, in the workspace that holds them.
  const [only, ...others] = repositories;
  const alone = only === undefined || others.length > 0 ? null : only.directory;
  const setUps = await Promise.all(repositories.map(({ directory }) => services.folders.isSetUp(sessionId, directory)));
  return {
    paths,
    wasSetUp: setUps.includes(true),
    visiblePaths: { workspace: seen.workspace, home: seen.home },
    aliases: [...(await services.folders.aliases(sessionId)), ...moved],
    workingDirectory: alone === null ? seen.workspace : join(seen.workspace, alone),
  };
}
