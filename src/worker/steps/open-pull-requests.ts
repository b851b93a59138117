import { SessionError } from "../../domain/errors/errors.ts";
import {
  pullRequestTemplatePaths,
  pullRequestText,
  withFurtherTurn,
} from "../../domain/repositories/pull-request-text.ts";
import { savePullRequest } from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { Clone } from "../clones/clone.ts";
import { readCommittedFile } from "../clones/commit-contents.ts";
import type { PushedWork } from "./push.ts";

const templateLimit = 20_000;

type Services = Pick<AttemptServices, "database" | "traces" | "forgeOf" | "publicUrl">;

/**
 * Opens a pull request for each pushed branch, or finds the open one; if Offstage has no API for the forge, a notice says so.
 * @param finalMessage of the agent, the body's main part
 * @throws SessionError if the forge refuses or can't be reached
 */
export async function openPullRequests(
  attempt: Attempt,
  services: Services,
  pushed: readonly PushedWork[],
  finalMessage: string,
): Promise<void> {
  for (const work of pushed) await openPullRequest(attempt, services, work, finalMessage);
}

async function openPullRequest(
  { session, mask, signal, emit }: Attempt,
  { database, traces, forgeOf, publicUrl }: Services,
  { clone, commits, headSha: exportedSha, pushedSha }: PushedWork,
  finalMessage: string,
): Promise<void> {
  const { repository, address, targetBranch: target } = clone;
  const head = session.branchName;
  const forge = forgeOf(address);
  if (!forge.opensPullRequests) {
    const text = `Offstage knows no pull request API of the server of ${repository.name}: the branch ${head} is the result.`;
    await emit({ type: "notice", data: { level: "info", text } });
    return;
  }
  const { title, body } = pullRequestText({
    title: session.title,
    finalMessage,
    sessionUrl: `${publicUrl()}/sessions/${session.sessionId}`,
    template: await templateIn(clone, exportedSha, signal),
    headSha: pushedSha,
    commits,
  });
  const attributes = { "offstage.repository.id": repository.id, "offstage.forge": forge.kind };
  const { created, ...opened } = await traces.span("pullRequest", { kind: "client", attributes }, () =>
    forge.openPullRequest(address, { head, target, title: mask.text(title), body: mask.text(body) }, signal),
  );
  const { number, url, state } = opened;
  if (!created) {
    const edit = (current: string): string | null => {
      const further = withFurtherTurn(current, { headSha: pushedSha, finalMessage, commits });
      return further === null ? null : mask.text(further);
    };
    await forge.editPullRequest(address, number, edit, signal).catch(async (error: unknown) => {
      if (!(error instanceof SessionError)) throw error;
      // The work is there, and the pull request is open: that its text is older is no reason to fail.
      const text = `The text of the pull request of ${repository.name} does not tell of this turn: ${error.message}`;
      await emit({ type: "notice", data: { level: "warning", text: mask.text(text) } });
    });
  }
  const repositoryId = repository.id;
  await savePullRequest(database, session, { repositoryId, head, target, headSha: pushedSha, number, url, state });
  await emit({ type: "pullRequest.opened", data: { repositoryId, number, url, created } });
}

/** The repository's pull request template in a commit, its first 20,000 characters; null if there is none. */
async function templateIn({ mirror }: Clone, sha: string, signal: AbortSignal): Promise<string | null> {
  for (const path of pullRequestTemplatePaths) {
    const template = await readCommittedFile(mirror.path, sha, path, signal);
    if (template !== null) return template.slice(0, templateLimit);
  }
  return null;
}
