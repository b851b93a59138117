import type { RepositoryCall } from "../forge.ts";
import type { Reaction, Thread as NamedThread } from "../../domain/answers/answer.ts";
import { oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import {
  earlierIn,
  expectStatus,
  postOnce,
  type Feedback,
  type ForgeComment,
  type NewComment,
} from "../feedback/feedback.ts";
import { emptyAnswer, type ForgeAnswer } from "../http/http.ts";
import { readLogEnd } from "../feedback/logs.ts";
import { refusedBy } from "../http/refusal.ts";
import type { AzureApi, AzureSettings } from "./api.ts";
import { logOfBuild } from "./build-log.ts";
import { readThreadPlace } from "./thread-place.ts";
import { addOnAzure } from "./pull-request-fields.ts";
import { mayWriteOnAzure } from "./may-write.ts";
import { earlierOnWorkItem, postOnWorkItem, reactOnWorkItem } from "./work-item-comments.ts";

/** Fields used of a thread (https://learn.microsoft.com/rest/api/azure/devops/git/pull-request-threads/list). */
interface Thread {
  readonly id: number;
  readonly comments?: readonly Comment[];
  readonly status?: string | null;
}

interface Comment {
  /** Of several in one thread: in each they begin at 1. */
  readonly id: number;
  readonly content?: string;
  readonly isDeleted?: boolean;
  readonly author?: { readonly displayName?: string } | null;
  /** `system`: Azure DevOps wrote it, about an action. */
  readonly commentType?: string;
}

/** Fields used of a commit (https://learn.microsoft.com/rest/api/azure/devops/git/commits/get). */
interface Commit {
  readonly parents?: readonly string[] | null;
}

/** More than a thread has comments (500): by the two numbers together comments are ordered. */
const mostInThread = 1_000_000;
/** Most characters of a status's description that are sent. */
const descriptionLimit = 255;
const states = { pending: "pending", success: "succeeded", failure: "failed" } as const;
/** Of a thread that is not ended. */
const openStatuses: ReadonlySet<string> = new Set(["unknown", "active", "pending"]);
/** A pull request's comments can be liked, and no more: what is no consent is not said by a like. */
const likes: ReadonlySet<Reaction> = new Set(["eyes", "+1", "rocket"]);

/** Answers on Azure DevOps: in threads of pull requests, and in the discussion of work items. */
export function createAzureFeedback(api: AzureApi, settings: AzureSettings, call: RepositoryCall): Feedback {
  const { host } = api;
  return {
    comment(address, subject, comment, signal) {
      if (subject.kind === "issue") return postOnWorkItem(api, address, subject.number, comment, signal);
      return postOnPullRequest(api, call, { address, number: subject.number, thread: null }, comment, signal);
    },
    reply(address, { subject, id }, comment, signal) {
      // The discussion of a work item has no threads.
      if (subject.kind === "issue") return postOnWorkItem(api, address, subject.number, comment, signal);
      return postOnPullRequest(api, call, { address, number: subject.number, thread: id }, comment, signal);
    },
    add: (address, number, addition, signal) => addOnAzure(api, settings, call, { address, number }, addition, signal),
    resolve: (address, thread, signal) => resolve(host, call, address, thread, signal),
    async react(address, { subject, commentId }, reaction, signal) {
      // Reactions are to comments alone.
      if (commentId === null) return false;
      if (subject.kind === "issue") {
        await reactOnWorkItem(api, address, subject.number, commentId, reaction, signal);
        return true;
      }
      const [, thread, id] = /^(\d+)\.(\d+)$/u.exec(commentId) ?? [];
      if (thread === undefined || id === undefined || !likes.has(reaction)) return false;
      const path = `/pullRequests/${subject.number}/threads/${thread}/comments/${id}/likes`;
      expectStatus(host, await call(address, "POST", path, signal, emptyAnswer), [200, 201, 204], "reaction");
      return true;
    },
    async setStatus(address, sha, { state, name, description, url }, signal) {
      const body = {
        state: states[state],
        description: description.slice(0, descriptionLimit).toWellFormed(),
        targetUrl: url,
        context: { name, genre: "offstage" },
      };
      const path = `/commits/${encodeURIComponent(sha)}/statuses`;
      expectStatus(host, await call(address, "POST", path, signal, { body }), [200, 201], "commit status");
    },
    async readLogEnd(address, job, bytes, signal) {
      const url = await logOfBuild(api, address, job, signal);
      return url === null
        ? null
        : readLogEnd(url, { headers: { ...api.headers, Accept: "text/plain" }, bytes, signal });
    },
    // `readLogEnd` takes the build, and finds the step itself.
    failedJobs: (_, { kind, id }) =>
      Promise.resolve(kind === "build" ? [{ id, name: "The step that failed last" }] : []),
    readPlace: (address, comment, signal) => readThreadPlace(host, call, address, comment, signal),
    async readThread(address, { subject, commentId, threadId }, signal) {
      if (subject.kind === "issue") return earlierOnWorkItem(api, address, subject.number, commentId, signal);
      if (threadId === null) return [];
      const path = `/pullRequests/${subject.number}/threads/${encodeURIComponent(threadId)}`;
      const answer = await call(address, "GET", path, signal);
      if (answer.status === 404) return [];
      if (answer.status !== 200) throw refusedBy(host, answer, "thread of comments");
      const said = ((answer.body as Thread).comments ?? []).filter(
        ({ isDeleted, commentType }) => isDeleted !== true && commentType !== "system",
      );
      const listed = said.map(({ id, author, content }) => ({
        id: `${threadId}.${id}`,
        author: author?.displayName ?? null,
        text: content,
      }));
      return earlierIn(listed, commentId);
    },
    async parentsOf(address, sha, signal) {
      const answer = await call(address, "GET", `/commits/${encodeURIComponent(sha)}`, signal);
      if (answer.status === 404) return [];
      expectStatus(host, answer, [200], "commit");
      return ((answer.body ?? {}) as Commit).parents ?? [];
    },
    mayWrite: (address, person, signal) => mayWriteOnAzure(api, settings, address, person, signal),
  };
}

/** A thread that was ended otherwise (`wontFix`, `byDesign`, `closed`) stays as it is. */
async function resolve(
  host: string,
  call: RepositoryCall,
  address: RepositoryAddress,
  { subject, id }: NamedThread,
  signal: AbortSignal,
): Promise<boolean> {
  // The discussion of a work item has no threads.
  if (subject.kind === "issue") return false;
  const path = `/pullRequests/${subject.number}/threads/${encodeURIComponent(id)}`;
  const read = await call(address, "GET", path, signal);
  if (read.status !== 200) throw refusedBy(host, read, "thread of comments");
  const { status } = read.body as Thread;
  if (status != null && !openStatuses.has(status)) return true;
  const answer = await call(address, "PATCH", path, signal, { body: { status: "fixed" } });
  expectStatus(host, answer, [200], "resolution of a thread");
  return true;
}

/** @param of.thread null: a new thread */
function postOnPullRequest(
  api: AzureApi,
  call: RepositoryCall,
  {
    address,
    number,
    thread,
  }: { readonly address: RepositoryAddress; readonly number: number; readonly thread: string | null },
  comment: NewComment,
  signal: AbortSignal,
): ReturnType<Feedback["comment"]> {
  const { host } = api;
  const threads = `/pullRequests/${number}/threads`;
  const page = `${api.pageOf(api.repositoryOf(address))}/pullrequest/${number}`;
  // A comment's number identifies it only together with its thread's, and so deliveries name it: no other one has this
  // id, so no `idScope`.
  const named = (threadId: number | string, id: number): ForgeComment => ({
    id: `${threadId}.${id}`,
    url: `${page}?discussionId=${threadId}`,
  });
  /** All threads are in one list. */
  async function find(): Promise<ForgeComment | null> {
    const answer = await call(address, "GET", threads, signal);
    if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
    const all = (answer.body as readonly Thread[]).flatMap(({ id: threadId, comments = [] }) =>
      comments
        .filter(({ isDeleted }) => isDeleted !== true)
        .map(({ id, content = "" }) => ({ id: threadId * mostInThread + id, body: content, threadId, commentId: id })),
    );
    const found = oldestWithMark(all, comment.key);
    return found === undefined ? null : named(found.threadId, found.commentId);
  }
  function read(body: unknown): ForgeComment {
    const { id, comments = [] } = body as Thread;
    return thread === null ? named(id, comments[0]?.id ?? 1) : named(thread, id);
  }
  async function send(content: string): Promise<ForgeAnswer> {
    const answer =
      thread === null
        ? // Closed: an open thread of ours could hold up the merge, if a policy wants all of them resolved.
          await call(address, "POST", threads, signal, {
            body: { comments: [{ parentCommentId: 0, content, commentType: "text" }], status: "closed" },
          })
        : await call(address, "POST", `${threads}/${encodeURIComponent(thread)}/comments`, signal, {
            body: { parentCommentId: 1, content, commentType: "text" },
          });
    return answer.status === 200 ? { ...answer, status: 201 } : answer;
  }
  return postOnce({ host, find, read, send }, comment, signal);
}
