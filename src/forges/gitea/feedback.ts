import { pathOfAddress } from "../../domain/repositories/path-of-address.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { RepositoryCall } from "../forge.ts";
import type { ReactionTarget } from "../../domain/answers/answer.ts";
import { oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import {
  earlierIn,
  expectStatus,
  lookFrom,
  postOnce,
  type Feedback,
  type ForgeComment,
  type LogReader,
} from "../feedback/feedback.ts";
import { feedbackInGitHubForm } from "../github-form.ts";
import { refusedBy } from "../http/refusal.ts";
import { addOnGitea } from "./pull-request-fields.ts";

/** Fields used of a comment (https://docs.gitea.com/api, issueGetComments). */
interface Comment {
  readonly id: number;
  readonly html_url: string;
  readonly body: string;
  readonly user?: { readonly login: string } | null;
}

/** Answers on Gitea and Forgejo. */
export function createGiteaFeedback({
  host,
  call,
  readLog,
}: {
  readonly host: string;
  readonly call: RepositoryCall;
  readonly readLog: LogReader;
}): Feedback {
  const comment: Feedback["comment"] = (address, { number }, wanted, signal) => {
    const path = `/issues/${number}/comments`;
    async function find(): Promise<ForgeComment | null> {
      // The list has no pages.
      const query = new URLSearchParams({ since: lookFrom(wanted).toISOString() });
      const answer = await call(address, "GET", `${path}?${query.toString()}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
      const found = oldestWithMark(answer.body as readonly Comment[], wanted.key);
      return found === undefined ? null : read(found);
    }
    const send = (body: string) => call(address, "POST", path, signal, { body: { body } });
    return postOnce({ host, find, send, read }, wanted, signal);
  };
  return {
    comment,
    reply: (address, { subject }, wanted, signal) => comment(address, subject, wanted, signal),
    async resolve(address, { id }, signal) {
      const answer = await call(address, "POST", `/pulls/comments/${encodeURIComponent(id)}/resolve`, signal);
      // Gitea has the call since 1.26, Forgejo has none; 404 with words is of a comment that is gone.
      if (answer.status === 405 || (answer.status === 404 && !isAnswered(answer.body))) return false;
      expectStatus(host, answer, [204], "resolution of a thread");
      return true;
    },
    async readThread(address, { subject: { number }, commentId }, signal) {
      const answer = await call(address, "GET", `/issues/${number}/comments`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
      const all = answer.body as readonly Comment[];
      const listed = all.map(({ id, user, body }) => ({ id: String(id), author: user?.login ?? null, text: body }));
      return earlierIn(listed, commentId);
    },
    add: (address, number, addition, signal) => addOnGitea({ host, call }, address, number, addition, signal),
    ...feedbackInGitHubForm({ host, call, readLog, pathOf, longestDescription: Infinity, pages: page, runAt }),
  };

  /** Gitea has the call since 1.25. A run's address has the run's number in its repository. */
  async function runAt(
    address: RepositoryAddress,
    { path, sha }: { readonly path: string; readonly sha: string },
    signal: AbortSignal,
  ): Promise<string | null> {
    let seen = 0;
    for (let at = 1; at <= mostPages; at += 1) {
      const query = `head_sha=${encodeURIComponent(sha)}&${page}&page=${at}`;
      const answer = await call(address, "GET", `/actions/runs?${query}`, signal);
      const { workflow_runs: runs, total_count: total = 0 } = (
        answer.status === 200 ? (answer.body ?? {}) : {}
      ) as Runs;
      const found = runs?.find(({ html_url: url }) => url !== undefined && pathOfAddress(url) === path);
      if (found !== undefined) return String(found.id);
      seen += runs?.length ?? 0;
      if (runs == null || runs.length === 0 || total <= seen) return null;
    }
    return null;
  }
}

/** Asked for: as many at once as servers give by default. An administrator may allow fewer. */
const page = "limit=50";
/** Most pages of the runs of one commit. */
const mostPages = 6;

/** Fields used of a list of runs. */
interface Runs {
  readonly workflow_runs?: readonly Run[] | null;
  readonly total_count?: number;
}

/** Fields used of a run of a workflow. */
interface Run {
  readonly id: number;
  readonly html_url?: string;
}

/** Whether a call answered, and not the server that has no such call: that writes no JSON. */
function isAnswered(body: unknown): boolean {
  return typeof body === "object" && body !== null;
}

/** Comments on lines have the same ids as others. */
function pathOf({ subject, commentId }: ReactionTarget): string {
  return commentId === null ? `/issues/${subject.number}` : `/issues/comments/${encodeURIComponent(commentId)}`;
}

function read(comment: unknown): ForgeComment {
  const { id, html_url: url } = comment as Comment;
  return { id: String(id), url };
}
