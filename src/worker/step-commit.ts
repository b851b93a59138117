import { RunError } from "../domain/errors.ts";
import { createMask } from "../domain/mask.ts";
import { saveRepository, toldCommits } from "../store/progress.ts";
import type { Run } from "./run.ts";
import { workspaceRepository } from "./session-repositories.ts";
import type { CollectedRepository } from "./workspace.ts";
import type { PreparedRepository, WorkspaceRepository } from "./workspace-repository.ts";

/** A repository after the agent's work came out of the sandbox, with the place it has in the session. */
export interface Collected extends CollectedRepository {
  readonly position: number;
  readonly targetBranch: string;
}

/** Commits what the agent left, takes the commits out of the sandbox as objects, and keeps the diff on the session. */
export async function commitStep(run: Run, prepared: readonly PreparedRepository[]): Promise<Collected[]> {
  const collected = await collect(run);
  const results: Collected[] = [];
  const told = await toldCommits(run.dependencies.database, run.session);
  for (const [index, repository] of run.session.repositories.entries()) {
    const result = collected[index];
    const before = prepared[index];
    if (result === undefined || before === undefined) continue;
    for (const commit of result.commits.filter(({ sha }) => !told.has(sha))) {
      await run.emit({ type: "workspace.commit", data: { repositoryId: repository.id, ...commit } });
    }
    if (result.changed) await requireNoSecret(run, workspaceRepository(run, repository), before, result.headSha);
    results.push({ ...result, position: repository.position, targetBranch: before.targetBranch });
  }
  return results;
}

/** What is pushed is out of our hands: a known secret in any of the commits stops them all. @throws RunError secret_in_work */
async function requireNoSecret(
  run: Run,
  repository: WorkspaceRepository,
  start: PreparedRepository,
  headSha: string,
): Promise<void> {
  const history = await run.dependencies.workspaces.history(repository, start, headSha, run.signal);
  if (run.mask.text(history) === history) return;
  const named = run.secrets.filter(({ value }) => createMask([value]).text(history) !== history);
  const which = named.length === 0 ? "a key of this server" : named.map(({ name }) => name).join(", ");
  throw new RunError({
    code: "secret_in_work",
    reason: `The commits hold the value of ${which}: nothing was pushed.`,
    retryable: false,
    mend: "Send a message that asks the agent to remove it from every commit, or start a new session. Change the value, because the agent has seen it.",
  });
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
    await saveRepository(database, session, repository.position, { headSha, patch: mask.text(patch), patchTruncated });
  }
  return collected;
}

/** After a failure or a cancel: what the agent wrote is kept on the session as a diff. Never throws. */
export async function salvage(run: Run): Promise<void> {
  const { logger, workspaces } = run.dependencies;
  try {
    if (await workspaces.exists(run.session.sessionId)) await collect(run);
  } catch (error) {
    logger.warn({ err: error }, "could not keep the diff of a run that did not end well");
  }
}
