import type { components } from "@octokit/openapi-types";
import { oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import {
  expectStatus,
  lookFrom,
  postOnce,
  type Feedback,
  type ForgeComment,
  type LogReader,
  type NewComment,
  type ReactionTarget,
} from "../feedback.ts";
import { hasNextPage, type RepositoryCall } from "../pull-requests.ts";
import { refusedBy } from "../refusal.ts";

type Comment = Pick<components["schemas"]["issue-comment"], "id" | "html_url"> & { readonly body?: string };
type Permission = Partial<Pick<components["schemas"]["repository-collaborator-permission"], "permission" | "user">>;

/** Pages of 100 comments, made since the key was, that are looked through. */
const pageLimit = 10;
/** Most characters of a status's description. */
const descriptionLimit = 140;

interface GitHubApi {
  readonly host: string;
  readonly call: RepositoryCall;
  readonly readLog: LogReader;
}

/** Answers on GitHub (https://docs.github.com/rest/issues/comments, https://docs.github.com/rest/pulls/comments). */
export function createGitHubFeedback(api: GitHubApi): Feedback {
  const { host, call, readLog } = api;
  return {
    comment(address, { number }, comment, signal) {
      // A pull request is an issue here.
      const path = `/issues/${number}/comments`;
      return post(api, address, { list: path, send: path }, comment, signal);
    },
    reply(address, { subject: { number }, id }, comment, signal) {
      const list = `/pulls/${number}/comments`;
      return post(api, address, { list, send: `${list}/${encodeURIComponent(id)}/replies` }, comment, signal);
    },
    async react(address, target, content, signal) {
      const answer = await call(address, "POST", `${pathOf(target)}/reactions`, signal, { body: { content } });
      // 200: it was there.
      expectStatus(host, answer, [200, 201], "reaction");
    },
    async setStatus(address, sha, { state, name, description, url }, signal) {
      const body = { state, context: name, description: description.slice(0, descriptionLimit), target_url: url };
      const answer = await call(address, "POST", `/statuses/${encodeURIComponent(sha)}`, signal, { body });
      expectStatus(host, answer, [201], "commit status");
    },
    readLogEnd: (address, job, bytes, signal) =>
      readLog(address, `/actions/jobs/${encodeURIComponent(job)}/logs`, bytes, signal),
    async mayWrite(address, { id, login }, signal) {
      const path = `/collaborators/${encodeURIComponent(login)}/permission`;
      const answer = await call(address, "GET", path, signal);
      if (answer.status === 403) return null;
      if (answer.status === 404) return false;
      if (answer.status !== 200) throw refusedBy(host, answer, "question for a person's rights");
      const { permission, user } = (answer.body ?? {}) as Permission;
      return String(user?.id) === id && (permission === "admin" || permission === "write");
    },
  };
}

function pathOf({ subject, commentId, isOnLines }: ReactionTarget): string {
  if (commentId === null) return `/issues/${subject.number}`;
  return `/${isOnLines ? "pulls" : "issues"}/comments/${encodeURIComponent(commentId)}`;
}

function post(
  { host, call }: GitHubApi,
  address: RepositoryAddress,
  { list, send }: { readonly list: string; readonly send: string },
  comment: NewComment,
  signal: AbortSignal,
) {
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

function read(comment: unknown): ForgeComment {
  const { id, html_url: url } = comment as Comment;
  return { id: String(id), url };
}
