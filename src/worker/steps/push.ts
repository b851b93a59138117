import { saveRepository } from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { pushBranch } from "../git/mirror.ts";
import type { ClonedWork } from "./export-work.ts";

/** Work whose branch is on the remote. */
export interface PushedWork extends ClonedWork {
  /** The commit that the branch is at: the exported one, or its merge with a late push of the session's own. */
  readonly pushedSha: string;
}

/**
 * Pushes each changed repository's work branch from the mirror. A branch that is at the commit already is not pushed again.
 * @throws SessionError push_rejected, branch_diverged, branch_protected, resources_exhausted, repository_*
 */
export async function push(
  { session, mask, signal, emit }: Attempt,
  {
    database,
    traces,
    author,
    committer,
    signer,
  }: Pick<AttemptServices, "database" | "traces" | "author" | "committer" | "signer">,
  changes: readonly ClonedWork[],
): Promise<PushedWork[]> {
  const pushed: PushedWork[] = [];
  for (const work of changes) {
    const { repository, remote, mirror } = work.clone;
    const request = {
      branch: remote.branch,
      configuredBranch: remote.configuredBranch ?? null,
      sha: work.headSha,
      own: work.recorded.commits,
      message: mask.text(session.title),
      author,
      committer,
      signer,
    };
    const attributes = { "offstage.repository.id": repository.id };
    const sha = await traces.span("push", { kind: "client", attributes }, () => pushBranch(mirror, request, signal));
    await saveRepository(database, session, repository.position, { headSha: sha, pushedSha: sha });
    await emit({ type: "branch.pushed", data: { repositoryId: repository.id, branch: session.branchName, sha } });
    pushed.push({ ...work, pushedSha: sha });
  }
  return pushed;
}
