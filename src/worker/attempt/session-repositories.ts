import { join } from "node:path";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repository.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { WorkspaceRepository } from "../git/workspace-repository.ts";
import type { InsidePlace } from "../sandboxed/inside.ts";
import type { Run } from "./run.ts";

/** A repository as the claim of its session has it. */
export type SessionRepository = ClaimedSession["repositories"][number];

/**
 * Parses a repository's stored URL, which the API validated.
 * @throws Error if it does not parse all the same
 */
export function addressOf(repository: SessionRepository): RepositoryAddress {
  const address = parseRepositoryUrl(repository.url);
  if (isAddressProblem(address)) throw new Error(`the stored URL ${repository.url} ${address.problem}`);
  return address;
}

/** A repository as cloning needs it; its credentials are asked of the forge only when git is about to use them. */
export function workspaceRepository(run: Run, repository: SessionRepository): WorkspaceRepository {
  const address = addressOf(repository);
  const forge = run.dependencies.forgeOf(address);
  return {
    id: repository.id,
    url: address.cloneUrl,
    directory: repository.directory,
    branch: run.session.branchName,
    targetBranch: run.session.targetBranch ?? repository.branch,
    configuredBranch: repository.branch,
    baseSha: repository.baseSha,
    headSha: repository.headSha,
    named: forge.webUrl !== null,
    credentials: () => forge.credentials(address, run.signal),
  };
}

/** The session's folders on this disk, and the mirrors that its clones read. */
export function foldersOf({ dependencies, session }: Run) {
  const urls = session.repositories.map((repository) => addressOf(repository).cloneUrl);
  return dependencies.workspaces.folders(session.sessionId, urls);
}

/**
 * Folders for a command of Offstage's own among a session's files.
 * @param directory a repository's folder in the workspace, or `.` for the workspace itself
 */
export function placeOf(run: Run, directory: string): InsidePlace & { readonly workingDirectory: string } {
  const folders = foldersOf(run);
  return { ...folders, workingDirectory: join(folders.workspace, directory) };
}
