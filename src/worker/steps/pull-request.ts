import { pullRequestTemplatePaths, pullRequestText } from "../../domain/pull-request-text.ts";
import { savePullRequest } from "../../store/queue/progress.ts";
import type { Run } from "../attempt/run.ts";
import { addressOf, workspaceRepository, type SessionRepository } from "../attempt/session-repositories.ts";
import type { Collected } from "./commit.ts";

const templateLimit = 20_000;

/**
 * Opens a pull request for each changed repository, or finds the open one; if Offstage has no API for the forge, a notice says
 * so.
 * @param finalMessage of the agent, the body's main part
 * @throws RunError if the forge refuses or can't be reached
 */
export async function pullRequestStep(run: Run, changed: readonly Collected[], finalMessage: string): Promise<void> {
  for (const collected of changed) {
    const repository = run.session.repositories.find((candidate) => candidate.position === collected.position);
    if (repository !== undefined) await openPullRequest(run, repository, collected, finalMessage);
  }
}

async function openPullRequest(
  run: Run,
  repository: SessionRepository,
  collected: Collected,
  finalMessage: string,
): Promise<void> {
  const { mask } = run;
  const { database, forgeOf, publicUrl } = run.dependencies;
  const address = addressOf(repository);
  const forge = forgeOf(address);
  if (!forge.opensPullRequests) {
    const text = `Offstage knows no pull request API of the server of ${repository.name}: the branch ${run.session.branchName} is the result.`;
    await run.emit({ type: "notice", data: { level: "info", text } });
    return;
  }
  const head = run.session.branchName;
  const target = collected.targetBranch;
  const { title, body } = pullRequestText({
    title: run.session.title,
    finalMessage,
    sessionUrl: `${publicUrl()}/sessions/${run.session.sessionId}`,
    template: await templateOf(run, repository, collected.headSha),
    commits: collected.commits,
  });
  const attributes = { "offstage.repository.id": repository.id, "offstage.forge": forge.kind };
  const opened = await run.dependencies.traces.span("pullRequest", { kind: "client", attributes }, () =>
    forge.openPullRequest(address, { head, target, title: mask.text(title), body: mask.text(body) }, run.signal),
  );
  const { number, url, state } = opened;
  await savePullRequest(database, run.session, { repositoryId: repository.id, head, target, number, url, state });
  await run.emit({
    type: "pullRequest.opened",
    data: { repositoryId: repository.id, number, url, created: opened.created },
  });
}

/** The repository's pull request template in a commit, its first 20,000 characters; null if there is none. */
async function templateOf(run: Run, repository: SessionRepository, sha: string): Promise<string | null> {
  const wanted = workspaceRepository(run, repository);
  for (const path of pullRequestTemplatePaths) {
    const template = await run.dependencies.workspaces.readFile(wanted, sha, path, run.signal);
    if (template !== null) return template.slice(0, templateLimit);
  }
  return null;
}
