import { saveRepository, toldWork } from "../../store/queue/progress.ts";
import type { Run } from "../attempt/run.ts";
import { workspaceRepository } from "../attempt/session-repositories.ts";
import type { Collected } from "./commit.ts";

/**
 * Pushes each changed repository's work branch from the mirror. A branch that is at the commit already is not pushed again.
 * @throws RunError push_rejected, branch_diverged, branch_protected, resources_exhausted, repository_*
 */
export async function pushStep(run: Run, changed: readonly Collected[]): Promise<void> {
  const { database, traces, workspaces } = run.dependencies;
  const told = await toldWork(database, run.session);
  for (const { position, headSha: made } of changed) {
    const repository = run.session.repositories.find((candidate) => candidate.position === position);
    if (repository === undefined) continue;
    const own = told(repository.id).commits;
    const request = { headSha: made, own, message: run.mask.text(run.session.title), signal: run.signal };
    const attributes = { "offstage.repository.id": repository.id };
    const headSha = await traces.span("push", { kind: "client", attributes }, () =>
      workspaces.push({ repository: workspaceRepository(run, repository), ...request }),
    );
    await saveRepository(database, run.session, position, { headSha, pushedSha: headSha });
    await run.emit({
      type: "branch.pushed",
      data: { repositoryId: repository.id, branch: run.session.branchName, sha: headSha },
    });
  }
}
