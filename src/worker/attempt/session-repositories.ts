import { join } from "node:path";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import type { CloneSource, SessionRepository } from "../clones/clone.ts";
import type { SandboxFolders } from "../sandboxed/run-command.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";

/**
 * Parses a repository's stored URL, which the API validated.
 * @throws Error if it does not parse all the same
 */
export function addressOf(repository: Pick<SessionRepository, "url">): RepositoryAddress {
  const address = parseRepositoryUrl(repository.url);
  if (isAddressProblem(address)) throw new Error(`the stored URL ${repository.url} ${address.problem}`);
  return address;
}

/**
 * A repository as cloning needs it; its credentials are asked of the forge only when git is about to use them.
 * @param formerTarget target branch of the session's open pull request; null if there is none
 */
export function cloneSource(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  { forgeOf }: Pick<AttemptServices, "forgeOf">,
  repository: SessionRepository,
  formerTarget: string | null = null,
): CloneSource {
  const address = addressOf(repository);
  const forge = forgeOf(address);
  const remote = {
    id: repository.id,
    url: address.cloneUrl,
    directory: repository.directory,
    branch: session.branchName,
    targetBranch: session.targetBranch ?? repository.branch,
    configuredBranch: repository.branch,
    formerTarget,
    baseSha: repository.baseSha,
    headSha: repository.headSha,
    named: forge.webUrl !== null && forge.namedByOperator !== false,
    credentials: () => forgeOf(address).credentials(address, signal),
    sparse: repository.sparse,
  };
  return { repository, address, remote };
}

/** The session's folders on this disk, and the mirrors that its clones read. */
export function foldersOf(
  { sessionId, repositories }: Pick<ClaimedSession, "sessionId" | "repositories">,
  { folders, mirrors }: Pick<AttemptServices, "folders" | "mirrors">,
) {
  return {
    ...folders.pathsOf(sessionId),
    disk: folders.diskOf(sessionId),
    readOnly: repositories.map((repository) => mirrors.pathOf(addressOf(repository).cloneUrl)),
  };
}

/**
 * Folders for a command of Offstage's own among a session's files.
 * @param directory a repository's folder in the workspace, or `.` for the workspace itself
 */
export function commandFoldersOf(
  session: Pick<ClaimedSession, "sessionId" | "repositories">,
  services: Pick<AttemptServices, "folders" | "mirrors">,
  directory: string,
): SandboxFolders & { readonly workingDirectory: string } {
  const folders = foldersOf(session, services);
  return { ...folders, workingDirectory: join(folders.workspace, directory) };
}
