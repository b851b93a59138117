import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../domain/repository.ts";
import { saveRepository, type ClaimedSession } from "../store/claims.ts";
import type { Run } from "./run.ts";
import type { PreparedRepository, WorkspaceRepository } from "./workspace.ts";

type SessionRepository = ClaimedSession["repositories"][number];

/** Fetches the mirrors and lays out the session's own clones; keeps what is there already. */
export async function prepareStep(run: Run): Promise<PreparedRepository[]> {
  const { database, workspaces } = run.dependencies;
  const prepared = await workspaces.prepare({
    sessionId: run.session.sessionId,
    repositories: run.session.repositories.map((repository) => workspaceRepository(run, repository)),
    progress: createProgress(run),
    signal: run.signal,
  });
  for (const [index, repository] of run.session.repositories.entries()) {
    const baseSha = prepared[index]?.baseSha;
    if (baseSha != null && repository.baseSha === null) {
      await saveRepository(database, run.session, repository.position, { baseSha });
    }
  }
  return prepared;
}

/** At most one line of progress a second is worth an event. */
const progressEveryMs = 1_000;

function createProgress(run: Run): (progress: { text: string; fraction?: number }) => void {
  let toldAt = performance.now();
  return (progress) => {
    if (performance.now() - toldAt < progressEveryMs) return;
    toldAt = performance.now();
    // Progress is for the eye: what can't be told is not worth failing for, and a lost lease shows at the next step.
    run.emit({ type: "step.progress", data: { step: "prepare", ...progress } }).catch((error: unknown) => {
      run.dependencies.logger.debug({ err: error }, "could not tell the progress of a fetch");
    });
  };
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
    baseSha: repository.baseSha,
    named: forge.webUrl !== null,
    credentials: () => forge.credentials(address, run.signal),
  };
}

/** The stored URL passed the edge once, so it parses. */
export function addressOf(repository: SessionRepository): RepositoryAddress {
  const address = parseRepositoryUrl(repository.url);
  if (isAddressProblem(address)) throw new Error(`the stored URL ${repository.url} ${address.problem}`);
  return address;
}
