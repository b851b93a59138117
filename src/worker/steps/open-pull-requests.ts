import { setTimeout as pause } from "node:timers/promises";
import { sectionText } from "../../domain/conversations/section.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import type { RefusedRepository } from "../../domain/errors/refused-repositories.ts";
import type { PullRequestSettings } from "../../domain/repositories/pull-request-settings.ts";
import {
  pullRequestTemplatePaths,
  pullRequestText,
  withFurtherTurn,
} from "../../domain/repositories/pull-request-text.ts";
import type { Forge, OpenPullRequest } from "../../forges/forge.ts";
import { readPullRequestSettings, saveAsked } from "../../store/queue/recorded-pull-requests.ts";
import { beginEditing, endEditing, otherPullRequests } from "../../store/repositories/pull-request-sections.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { Clone } from "../clones/clone.ts";
import { readCommittedFile } from "../clones/commit-contents.ts";
import { targetNotFound } from "../git/mirrors/branch-refusals.ts";
import { git } from "../git/git.ts";
import { knownOf } from "../git/remote-repository.ts";
import { noticeApproval, readApproval } from "./pull-requests/approval.ts";
import type { PushedWork } from "./push/push.ts";
import { applyPullRequestSettings } from "./pull-requests/settings.ts";
import { defaultInstead } from "./pull-requests/follow-targets.ts";
import { knownPullRequest } from "./pull-requests/known.ts";
import { recordPullRequest } from "./pull-requests/record.ts";
import { requesterFor, type Requester } from "./pull-requests/requester-opener.ts";
import { refusalOf, undelivered } from "./commit/undelivered.ts";

const templateLimit = 20_000;
/** Bytes of the list of commits, and columns of each subject in it. */
const logLimit = 1024 ** 2;
const subjectLength = 500;
/** How long the lock on editing a pull request's text lasts, and how often a taken lock is checked, in ms. */
const editingMs = 120_000;
const editingPauseMs = 250;

type Services = Pick<AttemptServices, "database" | "vault" | "traces" | "forgeOf" | "publicUrl">;

/**
 * Opens a pull request for each pushed branch, or finds the one that was opened for it; if Offstage has no API for the forge, a
 * notice says so. It is opened in the name of the person who asked for the session, if an account of theirs allows it. A forge that
 * refuses one does not hold back the others, unless the session opens its pull requests together.
 * @param finalMessage of the agent, the body's main part
 * @param refused what could not be pushed; omitted: everything could
 * @throws SessionError if a forge refuses, can't be reached, or does not know the pushed branch in time, or if something could not be
 *   pushed
 */
export async function openPullRequests(
  attempt: Attempt,
  services: Services,
  pushed: readonly PushedWork[],
  finalMessage: string,
  refused: readonly RefusedRepository[] = [],
): Promise<void> {
  const delivered: string[] = [];
  const notOpened: RefusedRepository[] = [];
  for (const work of pushed) {
    if (attempt.session.pullRequestsTogether && notOpened.length > 0) break;
    try {
      await openPullRequest(attempt, services, work, finalMessage);
      delivered.push(work.clone.repository.name);
    } catch (error) {
      notOpened.push(refusalOf(error, work.clone, attempt));
    }
  }
  const all = [...refused, ...notOpened];
  const names = pushed.map(({ clone }) => clone.repository.name);
  if (all.length > 0) throw undelivered(attempt, all, { pushed: names, delivered });
}

async function openPullRequest(
  attempt: Attempt,
  services: Services,
  work: PushedWork,
  finalMessage: string,
): Promise<void> {
  const { session, mask, emit } = attempt;
  const { database, traces, forgeOf } = services;
  const { clone, pushedSha } = work;
  const { repository, address, targetBranch: target } = clone;
  const forge = forgeOf(address);
  if (!forge.opensPullRequests) {
    const text = `Offstage knows no pull request API of the server of ${repository.name}: the branch ${session.branchName} is the result.`;
    await emit({ type: "notice", data: { level: "info", text } });
    return;
  }
  const settings = await readPullRequestSettings(database, session);
  const { requester, whyNot } = await requesterFor(attempt, services, forge, clone);
  const draft = settings?.draft === true;
  const request = await requestFor(attempt, services, work, { finalMessage, requester, draft });
  const attributes = { "offstage.repository.id": repository.id, "offstage.forge": forge.kind };
  const opened = await traces.span("pullRequest", { kind: "client", attributes }, async () => {
    const known = await knownPullRequest(attempt, services, forge, clone, target);
    return known?.state === "open" ? { ...known, created: false } : open(attempt, forge, clone, request);
  });
  if (!opened.created && opened.state === "open") {
    await addTurnToText(attempt, services, { forge, number: opened.number }, work, finalMessage);
  }
  const approval = opened.created && opened.state === "open" ? await readApproval(attempt, forge, clone) : null;
  const { openedBy } = await recordPullRequest(attempt, services, { ...opened, clone, headSha: pushedSha, approval });
  if (opened.created && openedBy === null && whyNot !== null) {
    await emit({ type: "notice", data: { level: "info", text: mask.text(whyNot) } });
  }
  if (approval !== null)
    await noticeApproval(attempt, { forge, name: repository.name, approval, isRequesters: openedBy !== null });
  const author = openedBy === null ? null : requester;
  if (settings !== null)
    await applyPullRequestSettings(attempt, database, {
      opened,
      repository,
      settings: withoutAuthor(settings, author),
    });
}

/** The request to the forge: the pull request's texts, its opener, and the record before the request. */
async function requestFor(
  attempt: Attempt,
  services: Services,
  work: PushedWork,
  how: { readonly finalMessage: string; readonly requester: Requester | null; readonly draft: boolean },
): Promise<OpenPullRequest> {
  const { session, mask, signal } = attempt;
  const { clone, recorded, headSha, pushedSha, fork } = work;
  const { repository, targetBranch: target } = clone;
  const { finalMessage, requester, draft } = how;
  const { title, body } = pullRequestText({
    title: session.title,
    finalMessage,
    section: await firstSection(attempt, services, repository.id),
    template: await templateIn(clone, headSha, signal),
    headSha: pushedSha,
    commits: await ownCommits(work, signal),
  });
  return {
    head: session.branchName,
    target,
    from: fork,
    title: mask.text(title),
    body: mask.text(body),
    ...(draft && { draft }),
    work: {
      sessionId: session.sessionId,
      sha: pushedSha,
      askedMsAgo: recorded.askedMsAgo,
      beforeAsking: (opener) =>
        saveAsked(services.database, session, repository.position, {
          sha: pushedSha,
          by: opener === null ? null : (requester?.userId ?? null),
        }),
    },
    opener: requester?.opener,
  };
}

/**
 * Opens it, if need be into the default branch in the place of a target that is gone, such as one that was renamed while the agent
 * worked: unless the session or the repository's settings name the target. Forges refuse such a target in many words or, as GitLab,
 * open a pull request that can't be merged.
 * @throws SessionError target_branch_not_found, repository_*, and those of `Forge.openPullRequest`
 */
async function open(
  { signal, emit }: Attempt,
  forge: Forge,
  clone: Clone,
  request: OpenPullRequest,
): ReturnType<Forge["openPullRequest"]> {
  const { address, repository, remote } = clone;
  const instead = await defaultInstead(clone, signal);
  if (instead === null) return forge.openPullRequest(address, request, signal);
  if (remote.targetBranch !== null || instead === request.head)
    throw targetNotFound(remote.url, request.target, { defaultBranch: instead, names: [instead] });
  const text = `The branch ${request.target} of ${repository.name} is gone: the pull request is for its default branch ${instead}.`;
  await emit({ type: "notice", data: { level: "info", text } });
  return forge.openPullRequest(address, { ...request, target: instead }, signal);
}

/** The author can't be asked for a review: the forge would refuse the other reviewers too. */
function withoutAuthor(settings: PullRequestSettings, author: Requester | null): PullRequestSettings {
  if (author === null) return settings;
  const own = author.accountName.toLowerCase();
  return { ...settings, reviewers: settings.reviewers.filter((name) => name.toLowerCase() !== own) };
}

/** The first text of our section; a task of the worker's keeps it current: conversations/section-sweep.ts. */
async function firstSection(
  { session: { sessionId } }: Attempt,
  { database, publicUrl }: Services,
  repositoryId: string,
): Promise<string> {
  const others = await otherPullRequests(database.pool, { sessionId, repositoryId });
  return sectionText({ sessionUrl: `${publicUrl()}/sessions/${sessionId}`, others, approval: null, loop: null });
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

/**
 * Adds what the agent says of a further turn to the text of a pull request that was open before.
 * @throws SessionError if the forge can't be reached, or does not take it now
 */
async function addTurnToText(
  { session: { organizationId }, mask, signal, emit }: Attempt,
  { database }: Services,
  { forge, number }: { readonly forge: Forge; readonly number: number },
  { clone: { address, repository }, pushedSha: headSha, commits }: PushedWork,
  finalMessage: string,
): Promise<void> {
  const place = { organizationId, repositoryId: repository.id, number };
  const edit = (current: string): string | null => {
    const further = withFurtherTurn(current, { headSha, finalMessage, commits });
    return further === null ? null : mask.text(further);
  };
  let editing = await beginEditing(database, place, editingMs);
  while (editing === null) {
    await pause(editingPauseMs, undefined, { signal });
    editing = await beginEditing(database, place, editingMs);
  }
  try {
    await forge.editPullRequest(address, number, edit, signal);
  } catch (error) {
    // The next attempt finds the pull request, and whether its text has this turn.
    if (!(error instanceof SessionError) || error.passing) throw error;
    // The work is there, and the pull request is open: that its text is older is no reason to fail.
    const text = `The text of the pull request of ${repository.name} lacks this turn: ${error.message}`;
    await emit({ type: "notice", data: { level: "warning", text: mask.text(text) } });
  } finally {
    await endEditing(database, editing);
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
