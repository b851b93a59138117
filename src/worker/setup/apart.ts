import { join } from "node:path";
import type { Run } from "../attempt/run.ts";
import { placeOf, workspaceRepository, type SessionRepository } from "../attempt/session-repositories.ts";
import type { Archives } from "../disk/environment-cache.ts";
import type { MadeAt } from "../disk/session-folders.ts";
import { setupOnlyValues, type Preparation } from "./repository-environment.ts";
import {
  archiveSetup,
  hasFailed,
  runRepositoryScript,
  settleSetup,
  unpackSetup,
  type SetupPlace,
  type SetupResult,
} from "./script.ts";
import { removeSetupSecrets } from "./secrets.ts";

/** A setup's result, to be put into clones. */
export interface AppliedSetup extends Archives {
  /** Folders in which it was made, in which it may find itself only; null: where the session's own are seen. */
  readonly madeAt: MadeAt | null;
  /** Files that are no part of it, because a secret was in them. */
  readonly leftOut: readonly string[];
}

export interface SetupApart extends Preparation {
  readonly repository: SessionRepository;
  /** What is checked out, and the name of its branch. */
  readonly commit: { readonly sha: string; readonly branch: string };
  readonly secrets: Readonly<Record<string, string>>;
  /** An earlier result that it begins on. */
  readonly beneath: AppliedSetup | null;
}

/**
 * Runs a repository's script in a clone and a home of its own, which it sees where the session's are: what it made can be put
 * there. Nothing that another repository, commit or agent made is in them but `beneath`.
 * @returns nothing made if the script failed
 */
export async function runSetupApart(
  run: Run,
  { repository, commit, script, variables, image, secrets, beneath }: SetupApart,
): Promise<{ readonly result: SetupResult; readonly made: AppliedSetup | null }> {
  const { workspaces } = run.dependencies;
  const seen = placeOf(run, repository.directory);
  const wanted = workspaceRepository(run, repository);
  const folders = await workspaces.beginSetup(run.session.sessionId, wanted, commit, run.signal);
  const { workspace, home, disk, readOnly } = folders;
  const workingDirectory = join(workspace, repository.directory);
  // For commands of ours, which see the folders where they are.
  const ours = { workspace, workingDirectory, home, disk, readOnly, ...(image !== null && { image }) };
  const place: SetupPlace = {
    ...ours,
    workingDirectory: seen.workingDirectory,
    aliases: [seen, ...(beneath?.madeAt ? [beneath.madeAt] : [])].flatMap((at) => [
      { path: at.workspace, folder: workspace },
      { path: at.home, folder: home },
    ]),
    environment: setupVariables(seen.home, variables, secrets),
  };
  if (beneath !== null) await unpackSetup(run, ours, repository, beneath);
  const result = await runRepositoryScript(run, { place, script: script ?? "", repository });
  if (hasFailed(result)) return { result, made: null };
  await settleSetup(run, ours);
  const hidden = Object.keys(secrets).length === 0 ? [] : setupOnlyValues(run, repository.id);
  const leftOut = await removeSetupSecrets(run, ours, hidden);
  const archives = { work: join(folders.results, "work.tar"), home: join(folders.results, "home.tar") };
  await archiveSetup(run, ours, archives);
  // The result goes where there may be room for it only now.
  await workspaces.removeSetup(folders.folder);
  return { result, made: { ...archives, madeAt: beneath?.madeAt ?? null, leftOut } };
}

/** Of the script: nothing that a request or an agent could say is among it. */
export function setupVariables(
  home: string,
  variables: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  return { HOME: home, LANG: "C.UTF-8", TERM: "dumb", CI: "true", ...variables, ...secrets };
}
