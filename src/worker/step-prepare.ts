import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../domain/repository.ts";
import { saveRepository, saveWorkspaceWorker, type ClaimedSession } from "../store/claims.ts";
import { withLastCheckpoint, type FetchedCheckpoint } from "./checkpoint-restore.ts";
import type { Run } from "./run.ts";
import type { PreparedRepository, WorkspaceRepository } from "./workspace.ts";

type SessionRepository = ClaimedSession["repositories"][number];

export interface Prepared {
  readonly repositories: readonly PreparedRepository[];
  /** Where the work so far is from, as the agent is told that was cut off. */
  readonly from: "disk" | "checkpoint" | "remote";
}

/** Fetches the mirrors and lays out the session's own clones; goes on from what is here already, or from what another worker kept. */
export async function prepareStep(run: Run): Promise<Prepared> {
  const { database, workerId, workspaces } = run.dependencies;
  const { sessionId, workspaceWorker } = run.session;
  // Another worker has gone on since: what is left of an earlier life here is old.
  if (workspaceWorker !== null && workspaceWorker !== workerId) await workspaces.forget(sessionId);
  const prepared = (await workspaces.exists(sessionId))
    ? await layOut(run, null)
    : await withLastCheckpoint(run, (checkpoint) => layOut(run, checkpoint));
  for (const [index, repository] of run.session.repositories.entries()) {
    const baseSha = prepared.repositories[index]?.baseSha;
    if (baseSha != null && repository.baseSha === null) {
      await saveRepository(database, run.session, repository.position, { baseSha });
    }
  }
  await saveWorkspaceWorker(database, run.session, workerId);
  return prepared;
}

function layOut(run: Run, checkpoint: FetchedCheckpoint | null): Promise<Prepared> {
  return run.dependencies.workspaces.prepare({
    sessionId: run.session.sessionId,
    repositories: run.session.repositories.map((repository) => workspaceRepository(run, repository)),
    keptWork: checkpoint?.keptWork ?? new Map(),
    madeAt: checkpoint?.madeAt ?? null,
    progress: createProgress(run),
    signal: run.signal,
  });
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
    headSha: repository.headSha,
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
