import type { Reaction } from "../../domain/answers/answer.ts";
import { commentMarkKey, oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import {
  earlierIn,
  expectStatus,
  lookFrom,
  postOnce,
  type Feedback,
  type ForgeComment,
  type NewComment,
} from "../feedback/feedback.ts";
import { refusedBy } from "../http/refusal.ts";
import type { AzureApi } from "./api.ts";

/** Fields used of a comment (https://learn.microsoft.com/rest/api/azure/devops/wit/comments/get-comments). */
interface Comment {
  readonly id: number;
  readonly text?: string;
  readonly createdDate?: string;
  readonly createdBy?: { readonly displayName?: string } | null;
}

/** The comments of work items are a preview in each version. */
const version = "7.0-preview.3";
const reactionsVersion = "7.0-preview.1";
/** Pages of 200 comments, the newest first, that are looked through. */
const pageLimit = 10;
/** The equivalent of each reaction; without one, it was only seen. */
const reactions: Readonly<Record<Reaction, string>> = {
  eyes: "like",
  "+1": "like",
  "-1": "dislike",
  rocket: "hooray",
  confused: "confused",
};

/**
 * Posts a comment in the discussion of a work item of the repository's project, once. Its text is HTML of which Azure
 * DevOps keeps what it deems safe, so Markdown is shown as it is written, and the mark by which the comment is
 * recognized is a small visible line at its end.
 */
export function postOnWorkItem(
  api: AzureApi,
  address: RepositoryAddress,
  number: number,
  comment: NewComment,
  signal: AbortSignal,
): ReturnType<Feedback["comment"]> {
  const { host } = api;
  const { collection, project } = api.repositoryOf(address);
  const base = pathOf(project, number);
  const page = api.pageOf({ collection, project, repository: "" }).replace(/_git\/$/u, `_workitems/edit/${number}`);
  const read = (body: unknown): ForgeComment => {
    const { id } = body as Comment;
    // Counted apart from those of pull requests, of which a delivery may not name the thread.
    return { id: String(id), url: `${page}#${id}`, idScope: "issue" };
  };
  async function find(): Promise<ForgeComment | null> {
    let oldest: Comment | null = null;
    let more = "";
    for (let looked = 0; looked < pageLimit; looked += 1) {
      const query = `${base}/comments?$top=200&order=desc${more}`;
      const answer = await api.call(api.urlOf(collection, query, version), "GET", signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
      const { comments = [], continuationToken: token } = (answer.body ?? {}) as {
        readonly comments?: readonly Comment[];
        readonly continuationToken?: string | null;
      };
      oldest = oldestWithMark(comments.map(withUsualMark), comment.key) ?? oldest;
      const isOlder = Date.parse(comments.at(-1)?.createdDate ?? "") < lookFrom(comment).getTime();
      if (isOlder || token == null || token === "") break;
      more = `&continuationToken=${encodeURIComponent(token)}`;
    }
    return oldest === null ? null : read(oldest);
  }
  const send: Parameters<typeof postOnce>[0]["send"] = async (text) => {
    const url = api.urlOf(collection, `${base}/comments`, version);
    const answer = await api.call(url, "POST", signal, { body: { text: toHtml(text) } });
    return answer.status === 200 ? { ...answer, status: 201 } : answer;
  };
  return postOnce({ host, find, read, send }, comment, signal);
}

/** Earlier comments, in HTML as people wrote them: see `Feedback.readThread`. */
export async function earlierOnWorkItem(
  api: AzureApi,
  address: RepositoryAddress,
  number: number,
  commentId: string,
  signal: AbortSignal,
): ReturnType<Feedback["readThread"]> {
  const { collection, project } = api.repositoryOf(address);
  const query = `${pathOf(project, number)}/comments?$top=100&order=desc`;
  const answer = await api.call(api.urlOf(collection, query, version), "GET", signal);
  if (answer.status !== 200) throw refusedBy(api.host, answer, "list of comments");
  const { comments = [] } = (answer.body ?? {}) as { readonly comments?: readonly Comment[] };
  const listed = comments.map(({ id, createdBy, text }) => ({
    id: String(id),
    author: createdBy?.displayName ?? null,
    text,
  }));
  return earlierIn(listed.toReversed(), commentId);
}

/** Reacts to a comment; nothing happens if the reaction is there. */
export async function reactOnWorkItem(
  api: AzureApi,
  address: RepositoryAddress,
  number: number,
  comment: string,
  reaction: Reaction,
  signal: AbortSignal,
): Promise<void> {
  const { collection, project } = api.repositoryOf(address);
  const path = `${pathOf(project, number)}/comments/${encodeURIComponent(comment)}/reactions/${reactions[reaction]}`;
  const answer = await api.call(api.urlOf(collection, path, reactionsVersion), "PUT", signal);
  expectStatus(api.host, answer, [200, 201, 204], "reaction");
}

function pathOf(project: string, number: number): string {
  return `/${encodeURIComponent(project)}/_apis/wit/workItems/${number}`;
}

/** The text as it is written, in HTML, with the mark of its last line as words. */
function toHtml(text: string): string {
  const [, words = text, key] = /^([^]*)\n<!-- offstage comment=(\S+) -->$/u.exec(text) ?? [];
  const escaped = words
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
  const mark = key === undefined ? "" : `<br><br><small>offstage comment=${key}</small>`;
  return `${escaped.replaceAll(/\r\n?|\n/gu, "<br>")}${mark}`;
}

/** A comment with its mark as those of other forges have it, if the mark is what it ends with. */
function withUsualMark(comment: Comment): Comment & { readonly body: string } {
  const key = commentMarkKey(comment.text ?? "");
  return { ...comment, body: key === null ? "" : `\n<!-- offstage comment=${key} -->` };
}
