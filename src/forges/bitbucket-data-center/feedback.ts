import type { RepositoryCall } from "../forge.ts";
import type { Reaction, Subject, Thread } from "../../domain/answers/answer.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import { oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { hunkTo, type Hunk, type HunkLine } from "../feedback/diff-hunk.ts";
import {
  earlierIn,
  expectStatus,
  lookFrom,
  postOnce,
  type Feedback,
  type ForgeComment,
  type NewComment,
} from "../feedback/feedback.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { commentWithMark, withReferenceMarks } from "../feedback/reference-marks.ts";
import { refusedBy } from "../http/refusal.ts";
import { readPages } from "./pages.ts";
import { addOnDataCenter } from "./pull-request-fields.ts";
import { pagesOf, repositoryPlaceOf } from "./place.ts";
import type { Comment } from "./shapes.ts";

interface DataCenter {
  readonly host: string;
  readonly webUrl: string;
  readonly call: RepositoryCall;
  /** Sends a request about a repository to the API for reactions. */
  readonly reactions: RepositoryCall;
  /** Asks for the users of the server. */
  readonly users: (query: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<ForgeAnswer>;
}

/** An activity of a pull request (RestPullRequestActivity). */
interface Activity {
  readonly action?: string;
  readonly createdDate?: number;
  /** The first one of its thread, with the answers. */
  readonly comment?: Comment;
  /** The thread's place; omitted: the pull request as a whole. */
  readonly commentAnchor?: { readonly path?: string; readonly line?: number };
}

/** Pages of 100 that are looked through. */
const pageLimit = 10;
/** How often a thread is resolved that others change meanwhile. */
const resolveAttempts = 3;
/** Most characters of a build status's key, name and description. */
const textLimit = 255;
const states = { pending: "INPROGRESS", success: "SUCCESSFUL", failure: "FAILED" } as const;
const emoticons: Readonly<Record<Reaction, string>> = {
  eyes: "eyes",
  "+1": "thumbsup",
  "-1": "thumbsdown",
  rocket: "rocket",
  confused: "confused",
};

/** Fields used of a diff (https://developer.atlassian.com/server/bitbucket/rest/v904/api-group-pull-requests/). */
interface Diffs {
  readonly diffs?: readonly { readonly hunks?: readonly DiffHunk[] }[];
}
interface DiffHunk {
  readonly sourceLine?: number;
  readonly sourceSpan?: number;
  readonly destinationLine?: number;
  readonly destinationSpan?: number;
  readonly segments?: readonly {
    readonly type?: string;
    readonly lines?: readonly { readonly source?: number; readonly destination?: number; readonly line?: string }[];
  }[];
}

function hunkOf({ sourceLine, sourceSpan, destinationLine, destinationSpan, segments }: DiffHunk): Hunk {
  const header = `@@ -${sourceLine ?? 0},${sourceSpan ?? 0} +${destinationLine ?? 0},${destinationSpan ?? 0} @@`;
  const lines = (segments ?? []).flatMap(({ type, lines: all }) =>
    (all ?? []).map(({ source, destination, line }): HunkLine => {
      const sign = type === "ADDED" ? "+" : type === "REMOVED" ? "-" : " ";
      const [before, after] = [sign === "+" ? null : (source ?? null), sign === "-" ? null : (destination ?? null)];
      return { text: line ?? "", sign, before, after };
    }),
  );
  return { header, lines };
}

/** Answers on Bitbucket Data Center (https://developer.atlassian.com/server/bitbucket/rest/). */
export function createDataCenterFeedback(api: DataCenter): Feedback {
  const { host, webUrl, call, reactions, users } = api;
  return {
    comment: (address, subject, comment, signal) => post(api, address, { subject, thread: null }, comment, signal),
    reply: (address, { subject, id }, comment, signal) => post(api, address, { subject, thread: id }, comment, signal),
    add: (address, number, addition, signal) => addOnDataCenter(api, address, number, addition, signal),
    resolve: (address, thread, signal) => resolve(api, address, thread, signal),
    async react(address, { subject, commentId }, reaction, signal) {
      // Reactions are to comments alone.
      if (commentId === null || subject.kind === "issue") return false;
      const comment = `/pull-requests/${subject.number}/comments/${encodeURIComponent(commentId)}`;
      const answer = await reactions(address, "PUT", `${comment}/reactions/${emoticons[reaction]}`, signal);
      expectStatus(host, answer, [200], "reaction");
      return true;
    },
    async setStatus(address, sha, { state, name, description, url }, signal) {
      const text = (value: string): string => value.slice(0, textLimit);
      const body = { key: text(name), name: text(name), state: states[state], description: text(description), url };
      const answer = await call(address, "POST", `/commits/${encodeURIComponent(sha)}/builds`, signal, { body });
      expectStatus(host, answer, [204], "build status");
    },
    async readPlace(address, { number, threadId, path: givenPath, line: givenLine }, signal) {
      // The delivery of an answer in a thread names the comment that it answers, and no lines.
      const thread = givenPath === null ? await threadOf(api, address, { number, threadId }, signal) : null;
      const on = thread?.commentAnchor;
      const [path, line] = on === undefined ? [givenPath, givenLine] : [on.path ?? null, on.line ?? null];
      if (path === null) return null;
      const file = path.split("/").map(encodeURIComponent).join("/");
      const answer = await call(address, "GET", `/pull-requests/${number}/diff/${file}?withComments=false`, signal);
      if (answer.status === 404) return { path, line, hunk: null };
      if (answer.status !== 200) throw refusedBy(host, answer, "diff");
      const { diffs } = (answer.body ?? {}) as Diffs;
      const hunks = (diffs ?? []).flatMap(({ hunks: all }) => all ?? []).map(hunkOf);
      return { path, line, hunk: line === null ? null : hunkTo(hunks, line) };
    },
    async readThread(address, { subject: { number }, commentId, threadId }, signal) {
      if (threadId === commentId) return [];
      const root = (await threadOf(api, address, { number, threadId }, signal))?.comment;
      const all = root === undefined ? [] : withAnswers(root).toSorted((a, b) => a.id - b.id);
      const listed = all.map(({ id, author, text }) => ({ id: String(id), author: author?.name ?? null, text }));
      return earlierIn(listed, commentId);
    },
    // It has no CI.
    readLogEnd: () => Promise.resolve(null),
    async mayWrite(address, { id, login }, signal) {
      const { project, slug } = repositoryPlaceOf(webUrl, address);
      // With rights by groups and by the project; who administers may write.
      const filter = {
        filter: login,
        "permission.1": "REPO_WRITE",
        "permission.1.projectKey": project,
        "permission.1.repositorySlug": slug,
      };
      for await (const page of readPages((paging) => users({ ...filter, ...paging }, signal), pageLimit)) {
        if ("refused" in page) {
          if (page.refused.status === 403) return null;
          throw refusedBy(host, page.refused, "question for a person's rights");
        }
        const listed = page.items as readonly { readonly id?: number; readonly active?: boolean }[];
        const found = listed.find((user) => String(user.id) === id);
        if (found !== undefined) return found.active !== false;
      }
      return false;
    },
  };
}

function post(
  { host, webUrl, call }: DataCenter,
  address: RepositoryAddress,
  { subject, thread }: { readonly subject: Subject; readonly thread: string | null },
  comment: NewComment,
  signal: AbortSignal,
) {
  if (subject.kind === "issue") return Promise.reject(withoutIssues(host));
  const path = `/pull-requests/${subject.number}`;
  const read = (given: unknown): ForgeComment => {
    const id = String((given as Comment).id);
    return { id, url: `${pagesOf(webUrl, repositoryPlaceOf(webUrl, address))}${path}/overview?commentId=${id}` };
  };
  const marked = (all: readonly Comment[]): Comment | undefined =>
    oldestWithMark(
      all.map((each) => ({ ...each, body: commentWithMark(each.text ?? "") })),
      comment.key,
    );
  /** A thread has its answers in it; there is no list of comments but that of all that happened, the newest first. */
  async function find(): Promise<ForgeComment | null> {
    if (thread !== null) {
      const answer = await call(address, "GET", `${path}/comments/${encodeURIComponent(thread)}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "thread of comments");
      const found = marked(withAnswers(answer.body as Comment));
      return found === undefined ? null : read(found);
    }
    let oldest: Comment | undefined;
    const ask = (paging: Readonly<Record<string, string>>) =>
      call(address, "GET", `${path}/activities?${new URLSearchParams(paging).toString()}`, signal);
    for await (const page of readPages(ask, pageLimit)) {
      if ("refused" in page) throw refusedBy(host, page.refused, "list of comments");
      const activities = page.items as readonly Activity[];
      oldest = marked(activities.flatMap((each) => (each.comment === undefined ? [] : [each.comment]))) ?? oldest;
      if ((activities.at(-1)?.createdDate ?? Infinity) < lookFrom(comment).getTime()) break;
    }
    return oldest === undefined ? null : read(oldest);
  }
  const parent = thread === null ? {} : { parent: { id: Number(thread) } };
  const send = (text: string) =>
    call(address, "POST", `${path}/comments`, signal, { body: { text: withReferenceMarks(text), ...parent } });
  return postOnce({ host, find, read, send }, comment, signal);
}

/** A task is resolved by its state, any other thread as a thread; servers that can't do that do not report threads. */
async function resolve(
  { host, call }: DataCenter,
  address: RepositoryAddress,
  { subject, id }: Thread,
  signal: AbortSignal,
): Promise<boolean> {
  if (subject.kind === "issue") return false;
  const path = `/pull-requests/${subject.number}/comments/${encodeURIComponent(id)}`;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await call(address, "GET", path, signal);
    if (answer.status !== 200) throw refusedBy(host, answer, "thread of comments");
    const { version, severity, state, threadResolved } = answer.body as Comment;
    const isTask = severity === "BLOCKER";
    if (isTask ? state === "RESOLVED" : threadResolved === true) return true;
    if (!isTask && threadResolved === undefined) return false;
    const body = { version, ...(isTask ? { state: "RESOLVED" } : { threadResolved: true }) };
    const changed = await call(address, "PUT", path, signal, { body });
    if (changed.status === 200) return true;
    // It was changed since it was read.
    if (changed.status !== 409 || attempt === resolveAttempts) throw refusedBy(host, changed, "resolution of a thread");
  }
}

/**
 * The thread of a comment, with what it is on. A comment does not say it: it has no anchor, and its parent is missing
 * in answers (https://jira.atlassian.com/browse/BSERV-20114). The activity that begins with it is that of its thread.
 */
async function threadOf(
  { host, call }: DataCenter,
  address: RepositoryAddress,
  { number, threadId }: { readonly number: number; readonly threadId: string | null },
  signal: AbortSignal,
): Promise<Activity | null> {
  if (threadId === null) return null;
  const query = new URLSearchParams({ fromType: "COMMENT", fromId: threadId, limit: "1" }).toString();
  const answer = await call(address, "GET", `/pull-requests/${number}/activities?${query}`, signal);
  if (answer.status === 404) return null;
  const { values } = (answer.body ?? {}) as { readonly values?: readonly Activity[] };
  if (answer.status !== 200 || !Array.isArray(values)) throw refusedBy(host, answer, "thread of comments");
  const [activity] = values as readonly Activity[];
  const isOfThread =
    activity?.comment !== undefined && withAnswers(activity.comment).some(({ id }) => String(id) === threadId);
  return isOfThread ? activity : null;
}

/** A comment with its answers, and theirs. */
function withAnswers(comment: Comment): readonly Comment[] {
  return [comment, ...(comment.comments ?? []).flatMap(withAnswers)];
}

function withoutIssues(host: string): SessionError {
  return new SessionError({
    code: "repository_not_found",
    reason: `${host} has no issues: Bitbucket Data Center has pull requests alone.`,
    retryable: false,
    remedy: "Answer on the pull request, or where the issue is.",
  });
}
