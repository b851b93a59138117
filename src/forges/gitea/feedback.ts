import { oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import {
  expectStatus,
  lookFrom,
  postOnce,
  type Feedback,
  type ForgeComment,
  type LogReader,
  type ReactionTarget,
} from "../feedback.ts";
import type { RepositoryCall } from "../pull-requests.ts";
import { refusedBy } from "../refusal.ts";

/** Fields used of a comment (https://docs.gitea.com/api, issueGetComments). */
interface Comment {
  readonly id: number;
  readonly html_url: string;
  readonly body: string;
}

/** Fields used of a person's rights (repoGetRepoPermissions). */
interface Permission {
  readonly permission?: string;
  readonly user?: { readonly id?: number };
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
    async react(address, target, content, signal) {
      const answer = await call(address, "POST", `${pathOf(target)}/reactions`, signal, { body: { content } });
      // 200: it was there.
      expectStatus(host, answer, [200, 201], "reaction");
    },
    async setStatus(address, sha, { state, name, description, url }, signal) {
      const body = { state, context: name, description, target_url: url };
      const answer = await call(address, "POST", `/statuses/${encodeURIComponent(sha)}`, signal, { body });
      expectStatus(host, answer, [201], "commit status");
    },
    readLogEnd: (address, job, bytes, signal) =>
      readLog(address, `/actions/jobs/${encodeURIComponent(job)}/logs`, bytes, signal),
    async mayWrite(address, { id, login }, signal) {
      const path = `/collaborators/${encodeURIComponent(login)}/permission`;
      const answer = await call(address, "GET", path, signal);
      // Only who administers the repository may ask about others.
      if (answer.status === 403) return null;
      if (answer.status === 404) return false;
      if (answer.status !== 200) throw refusedBy(host, answer, "question for a person's rights");
      const { permission = "", user } = (answer.body ?? {}) as Permission;
      return String(user?.id) === id && ["owner", "admin", "write"].includes(permission);
    },
  };
}

/** Comments on lines have the same ids as others. */
function pathOf({ subject, commentId }: ReactionTarget): string {
  return commentId === null ? `/issues/${subject.number}` : `/issues/comments/${encodeURIComponent(commentId)}`;
}

function read(comment: unknown): ForgeComment {
  const { id, html_url: url } = comment as Comment;
  return { id: String(id), url };
}
