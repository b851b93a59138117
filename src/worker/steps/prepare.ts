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

/** The session's clones, ready for the setup. */
export interface Prepared {
  /** What each repository started from, in the session's order. */
  readonly repositories: readonly PreparedRepository[];
  /** Whether the folders were on this disk as the last attempt left them. */
  readonly isKept: boolean;
  /** Restores another worker's checkpoint, once the clones are set up; null if there is none. @returns whether it could */
  readonly restore: (() => Promise<boolean>) | null;
}

/**
 * Fetches the mirrors and makes the session's clones, or finds them on this disk as they were left.
 * @throws RunError repository_not_allowed, target_branch_not_found, branch_protected, resources_exhausted, repository_*
 */
export async function prepareStep(run: Run): Promise<Prepared> {
  const { database, workerId, workspaces } = run.dependencies;
  const { sessionId, workspaceWorker } = run.session;
  await requireAllowed(run);
  // Another worker had the session since: the folders here are outdated.
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
 * Checks the repositories again: the organization's list may be shorter since the session was created, and an automation names
 * its repositories once for all its sessions.
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
 * Restores another worker's checkpoint. To be called after the setup, which must see neither the agent's code nor its memory.
 * From here on this disk has the newest state of the session.
 * @returns where the work so far comes from, for the prompt after an interruption
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

/** Whether the clones start with everything that was exported from the session so far. */
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
  // The remote's default branch may have changed: keep the open pull request's target, so that no second one is opened.
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

/** Shortest time between two progress events. */
const progressEveryMs = 1_000;

function createProgress(run: Run): (progress: { text: string; fraction?: number }) => void {
  let toldAt = performance.now();
  return (progress) => {
    if (performance.now() - toldAt < progressEveryMs) return;
    toldAt = performance.now();
    // Progress is only shown: an error here must not fail the step, and a lost lease shows at the next step.
    run.emit({ type: "step.progress", data: { step: "prepare", ...progress } }).catch((error: unknown) => {
      run.dependencies.logger.debug({ err: error }, "could not tell the progress of a fetch");
    });
  };
}
