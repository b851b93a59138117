import { join } from "node:path";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repository.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { WorkspaceRepository } from "../git/workspace-repository.ts";
import type { InsidePlace } from "../sandboxed/inside.ts";
import type { Run } from "./run.ts";

export type SessionRepository = ClaimedSession["repositories"][number];

/** The stored URL passed the edge once, so it parses. */
export function addressOf(repository: SessionRepository): RepositoryAddress {
  const address = parseRepositoryUrl(repository.url);
  if (isAddressProblem(address)) throw new Error(`the stored URL ${repository.url} ${address.problem}`);
  return address;
}

/** A repository as the workspace needs it; the credentials are asked for only when git is about to use them. */
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

/** The session's folders on this disk, and what of its repositories they need to read. */
export function foldersOf({ dependencies, session }: Run) {
  const urls = session.repositories.map((repository) => addressOf(repository).cloneUrl);
  return dependencies.workspaces.folders(session.sessionId, urls);
}

/** Where a command of ours works among a session's files: in one repository's folder, or in that of all (`.`). */
export function placeOf(run: Run, directory: string): InsidePlace & { readonly workingDirectory: string } {
  const folders = foldersOf(run);
  return { ...folders, workingDirectory: join(folders.workspace, directory) };
}
