import { RunError } from "../../domain/errors.ts";
import { allowsRepository } from "../../domain/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repository.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { reopenMessages, saveRepository, saveWorkspaceWorker } from "../../store/queue/progress.ts";
import { openTargets } from "../../store/repositories/pull-requests.ts";
import type { Run } from "../attempt/run.ts";
import { workspaceRepository } from "../attempt/session-repositories.ts";
import { withLastCheckpoint, type FetchedCheckpoint } from "../checkpoints/restore.ts";
import type { LaidOut } from "../clones/workspace.ts";
import type { PreparedRepository } from "../git/workspace-repository.ts";

export interface Prepared {
  readonly repositories: readonly PreparedRepository[];
  /** Whether the folders are as they were left on this disk. */
  readonly isKept: boolean;
  /** Brings what another worker kept, once the folders are set up; null where there is none. @returns whether it could */
  readonly restore: (() => Promise<boolean>) | null;
}

/** Fetches the mirrors and lays out the session's own clones, or finds them as they were left here. */
export async function prepareStep(run: Run): Promise<Prepared> {
  const { database, workerId, workspaces } = run.dependencies;
  const { sessionId, workspaceWorker } = run.session;
  await requireAllowed(run);
  // Another worker has gone on since: what is left of an earlier life here is old.
  if (workspaceWorker !== null && workspaceWorker !== workerId) await workspaces.forget(sessionId);
  const { repositories, from, restore } = (await workspaces.exists(sessionId))
    ? { ...(await layOut(run, null)), restore: null }
    : await withLastCheckpoint(run, (checkpoint) => layOut(run, checkpoint));
  for (const [index, repository] of run.session.repositories.entries()) {
    const baseSha = repositories[index]?.baseSha;
    if (baseSha !== undefined && baseSha !== repository.baseSha) {
      await saveRepository(database, run.session, repository.position, { baseSha });
    }
  }
  return { repositories, isKept: from === "disk", restore };
}

/**
 * The list may have become shorter since the session was made, and an automation names its repositories once for all its runs.
 * @throws RunError repository_not_allowed
 */
async function requireAllowed({ dependencies, session }: Run): Promise<void> {
  const { organizationId, repositories } = session;
  if (repositories.length === 0) return;
  const patterns = await allowedRepositories(dependencies.database, organizationId);
  const refused = repositories.find(({ url }) => {
    const address = parseRepositoryUrl(url);
    return isAddressProblem(address) || !allowsRepository(patterns, address);
  });
  if (refused === undefined) return;
  throw new RunError({
    code: "repository_not_allowed",
    reason: `The repository ${refused.url} is not on the list of repositories that this organization allows.`,
    retryable: false,
    mend: "Ask an admin to add it in the organization's settings, then retry.",
  });
}

/**
 * Brings what another worker kept: after the setup, which is to see neither its code nor its memory. From here on the newest of
 * the session is on this disk.
 * @returns where the work so far is from, as the agent is told that was cut off
 */
export async function settleWorkspace(run: Run, prepared: Prepared): Promise<"disk" | "checkpoint" | "remote"> {
  const { database, workerId } = run.dependencies;
  const isRestored = (await prepared.restore?.()) ?? false;
  if (!prepared.isKept && !isOnRemote(run, prepared)) {
    await reopenMessages(database, run.session, isRestored ? "not kept" : "all");
  }
  await saveWorkspaceWorker(database, run.session, workerId);
  if (prepared.isKept) return "disk";
  return isRestored ? "checkpoint" : "remote";
}

/** Whether what the session had made of its repositories, as far as it was collected, is where it began here. */
function isOnRemote({ session }: Run, { repositories }: Prepared): boolean {
  return (
    session.repositories.length > 0 &&
    session.repositories.every(({ headSha, baseSha }, index) => {
      return headSha !== null && (headSha === repositories[index]?.headSha || headSha === baseSha);
    })
  );
}

async function layOut(run: Run, checkpoint: FetchedCheckpoint | null): Promise<LaidOut> {
  const { sessionId, branchName, targetBranch, repositories } = run.session;
  const repositoryIds = repositories.map(({ id }) => id);
  // The default branch may be another by now, to which a second pull request would go.
  const targets =
    targetBranch === null
      ? await openTargets(run.dependencies.database, { sessionId, branchName, repositoryIds })
      : new Map<string, string>();
  return run.dependencies.workspaces.prepare({
    sessionId,
    repositories: repositories.map((repository) => ({
      ...workspaceRepository(run, repository),
      formerTarget: targets.get(repository.id) ?? null,
    })),
    keptWork: checkpoint?.keptWork ?? new Map(),
    madeAt: checkpoint?.madeAt ?? null,
    isRestored: checkpoint !== null,
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
