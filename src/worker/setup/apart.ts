import { join } from "node:path";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { GatewayServicesOfAttempt } from "../attempt/session-gateway.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import type { Clone } from "../clones/clone.ts";
import { makeSetupClone } from "../clones/clones.ts";
import type { Archives } from "../disk/environment-cache.ts";
import type { SessionPaths } from "../disk/session-folders.ts";
import { setupOnlyValues, type Preparation } from "./repository-environment.ts";
import {
  archiveSetup,
  hasFailed,
  runRepositoryScript,
  settleSetup,
  unpackSetup,
  type SetupFolders,
  type SetupResult,
} from "./script.ts";
import { removeSetupSecrets } from "./secrets.ts";

/** A setup's result, to be unpacked into clones. */
export interface AppliedSetup extends Archives {
  /** The commit that it was made of. */
  readonly commit: string;
  /** Folders in which it was made, if its files may contain those paths only; null: the paths of this session's folders. */
  readonly originalPaths: SessionPaths | null;
  /** Files that were left out because they contained a secret. */
  readonly leftOut: readonly string[];
}

/** A setup to run in separate folders. */
export interface SetupApart extends Preparation {
  readonly clone: Clone;
  /** The commit to check out, and the name of its branch. */
  readonly commit: { readonly sha: string; readonly branch: string };
  /** Setup secrets by the names of their variables. */
  readonly secrets: Readonly<Record<string, string>>;
  /** A result that is unpacked before the script runs; null if there is none. */
  readonly base: AppliedSetup | null;
}

/** The worker's services for setups. */
export type SetupServices = Omit<GatewayServicesOfAttempt, "recordingsDirectory"> &
  Pick<AttemptServices, "folders" | "mirrors" | "checkouts" | "sandbox" | "limits" | "setupLimitMs">;

/**
 * Runs a repository's setup script in a separate clone and home, which it sees at the session's paths, so that its
 * result can be unpacked there. They contain nothing of another repository, commit or agent, except `base`.
 * @returns how the script ended, and its result; `made` is null if it failed
 * @throws SessionError resources_exhausted; Error if the result can't be archived
 */
export async function runSetupApart(
  attempt: Attempt,
  services: SetupServices,
  { clone, commit, script, variables, image, secrets, base }: SetupApart,
): Promise<{ readonly result: SetupResult; readonly made: AppliedSetup | null }> {
  const { session, signal } = attempt;
  const { repository } = clone;
  const run = { ...services, signal };
  const seen = commandFoldersOf(session, services, repository.directory);
  const folders = await makeSetupClone(services, session.sessionId, clone, commit, signal);
  const { workspace, home, disk, readOnly } = folders;
  const workingDirectory = join(workspace, repository.directory);
  // For Offstage's own commands, which see the folders at their real paths.
  const ours = { workspace, workingDirectory, home, disk, readOnly, ...(image !== null && { image }) };
  const setupFolders: SetupFolders = {
    ...ours,
    workingDirectory: seen.workingDirectory,
    aliases: [seen, ...(base?.originalPaths ? [base.originalPaths] : [])].flatMap((at) => [
      { path: at.workspace, folder: workspace },
      { path: at.home, folder: home },
    ]),
    environment: setupVariables(seen.home, variables, secrets),
  };
  if (base !== null) await unpackSetup(attempt, services, ours, repository, base);
  const result = await runRepositoryScript(attempt, services, {
    folders: setupFolders,
    script: script ?? "",
    repository,
  });
  if (hasFailed(result)) return { result, made: null };
  await settleSetup(run, ours);
  const hidden = Object.keys(secrets).length === 0 ? [] : setupOnlyValues(attempt.secrets, repository.id);
  const leftOut = await removeSetupSecrets(run, ours, hidden);
  const archives = { work: join(folders.results, "work.tar"), home: join(folders.results, "home.tar") };
  await archiveSetup(run, ours, archives);
  // Remove these folders now: the result may need their disk space.
  await services.folders.removeSetup(folders.folder);
  return { result, made: { ...archives, commit: commit.sha, originalPaths: base?.originalPaths ?? null, leftOut } };
}

/**
 * Environment of a setup script. Nothing in it comes from a request or an agent.
 * @param variables of the repository's settings; secrets override them
 */
export function setupVariables(
  home: string,
  variables: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  return { HOME: home, LANG: "C.UTF-8", TERM: "dumb", CI: "true", ...variables, ...secrets };
}
