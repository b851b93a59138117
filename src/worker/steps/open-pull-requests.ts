import { SessionError } from "../../domain/errors/errors.ts";
import {
  pullRequestTemplatePaths,
  pullRequestText,
  withFurtherTurn,
} from "../../domain/repositories/pull-request-text.ts";
import type { Forge } from "../../forges/forge.ts";
import { saveAsked } from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { Clone } from "../clones/clone.ts";
import { readCommittedFile } from "../clones/commit-contents.ts";
import { git } from "../git/git.ts";
import { knownOf } from "../git/remote-repository.ts";
import type { PushedWork } from "./push.ts";
import { recordPullRequest } from "./record-pull-request.ts";

const templateLimit = 20_000;
/** Bytes of the list of commits, and columns of each subject in it. */
const logLimit = 1024 ** 2;
const subjectLength = 500;

type Services = Pick<AttemptServices, "database" | "traces" | "forgeOf" | "publicUrl">;

/**
 * Opens a pull request for each pushed branch, or finds the one that was opened for it; if Offstage has no API for the forge, a
 * notice says so.
 * @param finalMessage of the agent, the body's main part
 * @throws SessionError if the forge refuses, can't be reached, or does not know the pushed branch in time
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
  attempt: Attempt,
  services: Services,
  work: PushedWork,
  finalMessage: string,
): Promise<void> {
  const { session, mask, signal, emit } = attempt;
  const { database, traces, forgeOf, publicUrl } = services;
  const { clone, recorded, headSha: exportedSha, pushedSha, fork } = work;
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
    commits: await ownCommits(work, signal),
  });
  const request = {
    head,
    target,
    from: fork,
    title: mask.text(title),
    body: mask.text(body),
    work: {
      sessionId: session.sessionId,
      sha: pushedSha,
      askedMsAgo: recorded.askedMsAgo,
      beforeAsking: () => saveAsked(database, session, repository.position, pushedSha),
    },
  };
  const attributes = { "offstage.repository.id": repository.id, "offstage.forge": forge.kind };
  const opened = await traces.span("pullRequest", { kind: "client", attributes }, () =>
    forge.openPullRequest(address, request, signal),
  );
  if (!opened.created && opened.state === "open") await tellOfTurn(attempt, forge, work, opened.number, finalMessage);
  await recordPullRequest(attempt, services, { ...opened, clone, headSha: pushedSha });
}

/** Most commits that the text of a pull request lists. */
const listedCommits = 200;

/**
 * The session's own commits in what was pushed, oldest first: those of this attempt, and those of attempts that ended before
 * they opened the pull request.
 */
async function ownCommits(
  { clone, commits, recorded, pushedSha }: PushedWork,
  signal: AbortSignal,
): Promise<readonly { readonly subject: string }[]> {
  const own = new Set([...recorded.commits, ...commits.map(({ sha }) => sha)]);
  const format = `--format=%H %<(${subjectLength},trunc)%s`;
  const log = ["log", "--reverse", "--topo-order", format, pushedSha, "--not", ...knownOf(clone)];
  const { code, stdout } = await git(log, { cwd: clone.mirror.path, signal, maximumOutput: logLimit });
  if (code !== 0) return commits;
  const lines = stdout.split("\n").map((line) => ({ sha: line.split(" ", 1)[0] ?? "", line }));
  const listed = lines.filter(({ sha }) => own.has(sha)).slice(0, listedCommits);
  return listed.map(({ sha, line }) => ({ subject: line.slice(sha.length + 1).trimEnd() }));
}

/** Adds what the agent says of a further turn to the text of a pull request that was open before. */
async function tellOfTurn(
  { mask, signal, emit }: Attempt,
  forge: Forge,
  { clone: { address, repository }, pushedSha: headSha, commits }: PushedWork,
  number: number,
  finalMessage: string,
): Promise<void> {
  const edit = (current: string): string | null => {
    const further = withFurtherTurn(current, { headSha, finalMessage, commits });
    return further === null ? null : mask.text(further);
  };
  try {
    await forge.editPullRequest(address, number, edit, signal);
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    // The work is there, and the pull request is open: that its text is older is no reason to fail.
    const text = `The text of the pull request of ${repository.name} does not tell of this turn: ${error.message}`;
    await emit({ type: "notice", data: { level: "warning", text: mask.text(text) } });
  }
}

/** The repository's pull request template in a commit, its first 20,000 characters; null if there is none. */
async function templateIn({ mirror }: Clone, sha: string, signal: AbortSignal): Promise<string | null> {
  for (const path of pullRequestTemplatePaths) {
    const template = await readCommittedFile(mirror.path, sha, path, signal);
    if (template !== null) return template.slice(0, templateLimit);
  }
  return null;
}
