import { saveRepository } from "../store/claims.ts";
import type { Run } from "./run.ts";
import type { Collected } from "./step-commit.ts";
import { workspaceRepository } from "./step-prepare.ts";

/** Pushes each changed repository's work branch, from the mirror; what is there already is not pushed again. */
export async function pushStep(run: Run, changed: readonly Collected[]): Promise<void> {
  const { database, traces, workspaces } = run.dependencies;
  for (const { position, headSha } of changed) {
    const repository = run.session.repositories.find((candidate) => candidate.position === position);
    if (repository === undefined) continue;
    await traces.span("push", { kind: "client", attributes: { "offstage.repository.id": repository.id } }, () =>
      workspaces.push({ repository: workspaceRepository(run, repository), headSha, signal: run.signal }),
    );
    await saveRepository(database, run.session, position, { pushedSha: headSha });
    await run.emit({
      type: "branch.pushed",
      data: { repositoryId: repository.id, branch: run.session.branchName, sha: headSha },
    });
  }
}
