import type { RepositoryCall } from "../forge.ts";
import type { components } from "@octokit/openapi-types";
import type { IdScope, Reaction, ReactionTarget, Thread } from "../../domain/answers/answer.ts";
import { oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import {
  earlierIn,
  lookFrom,
  mostEarlier,
  postOnce,
  type Feedback,
  type ForgeComment,
  type ListedComment,
  type LogReader,
  type NewComment,
} from "../feedback/feedback.ts";
import { feedbackInGitHubForm } from "../github-form.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { hasNextPage } from "../pull-requests.ts";
import { refusedBy } from "../http/refusal.ts";
import { addOnGitHub } from "./pull-request-fields.ts";

type Comment = Pick<components["schemas"]["issue-comment"], "id" | "html_url"> & {
  readonly body?: string;
  readonly user?: { readonly login: string } | null;
  /** Of comments on lines: the first one of the thread, which itself has none. */
  readonly in_reply_to_id?: number;
};

/** Pages of 100 comments, made since the key was, that are looked through. */
const pageLimit = 10;

interface GitHubApi {
  readonly host: string;
  readonly call: RepositoryCall;
  readonly readLog: LogReader;
  /** Resolves a thread, which REST has no call for. */
  readonly resolveThread: (address: RepositoryAddress, thread: Thread, signal: AbortSignal) => Promise<void>;
  /** Reacts to a review of a pull request, which REST has no call for either. */
  readonly reactToReview: (
    address: RepositoryAddress,
    review: { readonly number: number; readonly id: string },
    reaction: Reaction,
    signal: AbortSignal,
  ) => Promise<void>;
}

/** Answers on GitHub (https://docs.github.com/rest/issues/comments, https://docs.github.com/rest/pulls/comments). */
export function createGitHubFeedback(api: GitHubApi): Feedback {
  const inForm = feedbackInGitHubForm({ ...api, pathOf, longestDescription: 140, pages: "per_page=100" });
  return {
    comment(address, { number }, comment, signal) {
      // A pull request is an issue here.
      const path = `/issues/${number}/comments`;
      return post(api, address, { list: path, send: path, idScope: "conversation" }, comment, signal);
    },
    reply(address, { subject: { number }, id }, comment, signal) {
      const list = `/pulls/${number}/comments`;
      const send = `${list}/${encodeURIComponent(id)}/replies`;
      return post(api, address, { list, send, idScope: "lines" }, comment, signal);
    },
    async resolve(address, thread, signal) {
      await api.resolveThread(address, thread, signal);
      return true;
    },
    async readThread(address, { subject: { number }, commentId, threadId, isOnLines }, signal) {
      const conversation = { path: `/issues/${number}/comments`, isNewestFirst: false };
      const lines = { path: `/pulls/${number}/comments`, isNewestFirst: true };
      if (isOnLines && threadId === commentId) return [];
      const isOfThread = ({ id, in_reply_to_id: first }: Comment): boolean => String(first ?? id) === threadId;
      const before = (all: readonly Comment[]) =>
        earlierIn((isOnLines ? all.filter(isOfThread) : all).map(listedComment), commentId);
      const isWhole = (all: readonly Comment[]): boolean =>
        before(all).length >= mostEarlier.comments || (isOnLines && all.some(({ id }) => String(id) === threadId));
      return before(await newest(api, address, isOnLines ? lines : conversation, isWhole, signal));
    },
    add: (address, number, addition, signal) => addOnGitHub(api, address, number, addition, signal),
    ...inForm,
    async react(address, target, reaction, signal) {
      const { subject, reviewId } = target;
      if (reviewId === undefined) return inForm.react(address, target, reaction, signal);
      await api.reactToReview(address, { number: subject.number, id: reviewId }, reaction, signal);
      return true;
    },
  };
}

function pathOf({ subject, commentId, isOnLines }: ReactionTarget): string {
  if (commentId === null) return `/issues/${subject.number}`;
  return `/${isOnLines ? "pulls" : "issues"}/comments/${encodeURIComponent(commentId)}`;
}

const listedComment = ({ id, user, body }: Comment): ListedComment => ({
  id: String(id),
  author: user?.login ?? null,
  text: body,
});

/**
 * The newest comments of a list, the oldest of them first: page by page from its newest one on, of which there may be but a single comment,
 * until they are enough.
 * @param list.isNewestFirst whether the list can begin with the newest; if not, its first page names the last one
 */
async function newest(
  { host, call }: GitHubApi,
  address: RepositoryAddress,
  { path, isNewestFirst }: { readonly path: string; readonly isNewestFirst: boolean },
  isEnough: (all: readonly Comment[]) => boolean,
  signal: AbortSignal,
): Promise<readonly Comment[]> {
  const order = isNewestFirst ? "sort=created&direction=desc&" : "";
  const ask = async (page: number): Promise<ForgeAnswer> => {
    const answer = await call(address, "GET", `${path}?${order}per_page=100&page=${page}`, signal);
    if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
    return answer;
  };
  const first = await ask(1);
  const last = Number(/[?&]page=(\d+)[^>]*>;\s*rel="last"/u.exec(first.headers.get("link") ?? "")?.[1] ?? 1);
  // Comments that are deleted meanwhile move others to another page.
  const found = new Map<Comment["id"], Comment>();
  const all = (): Comment[] => [...found.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  for (let read = 0; read < Math.min(last, mostEarlier.pages) && !isEnough(all()); read += 1) {
    const page = isNewestFirst ? read + 1 : last - read;
    const { body } = page === 1 ? first : await ask(page);
    for (const comment of body as readonly Comment[]) found.set(comment.id, comment);
  }
  return all();
}

function post(
  { host, call }: GitHubApi,
  address: RepositoryAddress,
  { list, send, idScope }: { readonly list: string; readonly send: string; readonly idScope: IdScope },
  comment: NewComment,
  signal: AbortSignal,
) {
  const read = (posted: unknown): ForgeComment => {
    const { id, html_url: url } = posted as Comment;
    return { id: String(id), url, idScope };
  };
  async function find(): Promise<ForgeComment | null> {
    for (let page = 1, seen = 0; page <= pageLimit; page += 1) {
      const since = lookFrom(comment).toISOString();
      const query = new URLSearchParams({ since, per_page: "100", page: String(page) });
      const answer = await call(address, "GET", `${list}?${query.toString()}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
      const listed = answer.body as readonly Comment[];
      const found = oldestWithMark(listed, comment.key);
      if (found !== undefined) return read(found);
      seen += listed.length;
      if (hasNextPage(answer, seen) !== true) break;
    }
    return null;
  }
  const api = { host, find, read, send: (body: string) => call(address, "POST", send, signal, { body: { body } }) };
  return postOnce(api, comment, signal);
}
