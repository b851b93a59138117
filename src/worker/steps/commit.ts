import { saveRepository, toldWork, type ToldWork } from "../../store/queue/progress.ts";
import type { Run } from "../attempt/run.ts";
import { addressOf, workspaceRepository, type SessionRepository } from "../attempt/session-repositories.ts";
import type { CollectedRepository } from "../clones/workspace.ts";
import type { PreparedRepository } from "../git/workspace-repository.ts";
import { maskSlices } from "./mask-slices.ts";
import { requireNoSecret } from "./require-no-secret.ts";

/** A repository's exported work. */
export interface Collected extends CollectedRepository {
  /** The repository's position in the session. */
  readonly position: number;
  readonly targetBranch: string;
  /** Whether there is something to push, or a pull request to open. */
  readonly changed: boolean;
  /** Whether an earlier attempt pushed something. */
  readonly wasPushed: boolean;
}

/**
 * Commits what the agent left uncommitted, exports the commits from the sandbox as objects, checks that they hold no secret,
 * and saves the diff on the session.
 * @param prepared what each repository started from, in the session's order
 * @throws RunError workspace_broken, secret_in_work, token_in_work, resources_exhausted, sandbox_unavailable
 */
export async function commitStep(run: Run, prepared: readonly PreparedRepository[]): Promise<Collected[]> {
  const collected = await collect(run);
  const results: Collected[] = [];
  const told = await toldWork(run.dependencies.database, run.session);
  for (const [index, repository] of run.session.repositories.entries()) {
    const result = collected[index];
    const before = prepared[index];
    if (result === undefined || before === undefined) continue;
    const known = told(repository.id);
    for (const commit of result.commits.filter(({ sha }) => !known.commits.has(sha))) {
      await run.emit({ type: "workspace.commit", data: { repositoryId: repository.id, ...commit } });
    }
    const changed = isChanged(run, repository, { collected: result, start: before, told: known });
    if (changed) await requireNoSecret(run, repository, { start: before, collected: result });
    const { position } = repository;
    results.push({
      ...result,
      position,
      targetBranch: before.targetBranch,
      changed,
      wasPushed: known.pushed !== null,
    });
  }
  return results;
}

/**
 * Whether to push: yes for what this attempt made, and for what an earlier attempt made but could not push or open a pull
 * request for. Work with a pull request is not pushed again: that may be merged or closed by now, and its branch deleted.
 */
function isChanged(
  run: Run,
  repository: SessionRepository,
  work: { readonly collected: CollectedRepository; readonly start: PreparedRepository; readonly told: ToldWork },
): boolean {
  const { collected, start, told } = work;
  const { isMoved, isAhead, headSha } = collected;
  if (isMoved && headSha !== repository.headSha) return isAhead || told.pushed !== null;
  const { opensPullRequests } = run.dependencies.forgeOf(addressOf(repository));
  const isThere = told.pushed !== null && told.pushed.sha === repository.headSha;
  const isBrought = isThere && (told.pushed.hasPullRequest || !opensPullRequests);
  // No event tells of a failed attempt's commits, so the head counts too; other people's commits on the branch are not the
  // session's.
  const isOwn = told.commits.size > 0 || headSha !== start.headSha;
  return isAhead && isOwn && !isBrought;
}

async function collect(run: Run): Promise<CollectedRepository[]> {
  const { database, workspaces } = run.dependencies;
  const { mask, session } = run;
  const collected = await workspaces.collect({
    sessionId: session.sessionId,
    repositories: session.repositories.map((repository) => workspaceRepository(run, repository)),
    message: session.title,
    coAuthor: session.requester === null ? null : { name: session.requester.name, email: "requester@localhost" },
    signal: run.signal,
  });
  for (const [index, repository] of session.repositories.entries()) {
    const result = collected[index];
    if (result === undefined) continue;
    const { headSha, patch, patchTruncated } = result;
    const shown = await maskSlices(mask, patch);
    await saveRepository(database, session, repository.position, { headSha, patch: shown, patchTruncated });
  }
  return collected;
}

/** Saves the diff of the agent's work on the session after a failure or a cancel. Never throws. */
export async function salvage(run: Run): Promise<void> {
  const { logger, workspaces } = run.dependencies;
  try {
    if (await workspaces.exists(run.session.sessionId)) await collect(run);
  } catch (error) {
    logger.warn({ err: error }, "could not keep the diff of a run that did not end well");
  }
}
