import type { RepositoryCall } from "../forge.ts";
import type { Reaction, Subject } from "../../domain/answers/answer.ts";
import { oldestWithMark } from "../../domain/repositories/comment-mark.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import {
  earlierIn,
  expectStatus,
  lookFrom,
  mostEarlier,
  postOnce,
  type Feedback,
  type ForgeComment,
  type ListedComment,
  type LogReader,
  type NewComment,
  failedIn,
  type RunJob,
} from "../feedback/feedback.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { hasNextPage } from "../pull-requests.ts";
import { refusedBy, wordsOf } from "../http/refusal.ts";
import { pathOn } from "../serves.ts";
import { addOnGitLab } from "./pull-request-fields.ts";
import { developer } from "./access.ts";
import { withoutQuickActions } from "./quick-actions.ts";

interface GitLabApi {
  readonly host: string;
  readonly webUrl: string;
  readonly call: RepositoryCall;
  readonly readLog: LogReader;
  /** Asks for the user with a name. */
  readonly users: (name: string, signal: AbortSignal) => Promise<ForgeAnswer>;
}

/** Fields used of a note (https://docs.gitlab.com/api/notes/). */
interface Note {
  readonly id: number;
  readonly body: string;
  readonly created_at: string;
  readonly author?: { readonly username?: string } | null;
  /** `DiffNote`: it is on lines. */
  readonly type?: string | null;
  /** Whether GitLab wrote it, about an action. */
  readonly system?: boolean;
  /** Whether not everybody who may read the rest may read it, by its older and its newer name. */
  readonly confidential?: boolean | null;
  readonly internal?: boolean;
}

/** Fields used of a discussion (https://docs.gitlab.com/api/discussions/). */
interface Discussion {
  /** Whether it is no thread, but one note in the conversation. */
  readonly individual_note?: boolean;
  readonly notes?: readonly Note[];
}

/** Fields used of a job of a pipeline (https://docs.gitlab.com/api/jobs/). */
interface GitLabJob extends RunJob {
  /** Whether the pipeline goes on, and may pass, if it fails. */
  readonly allow_failure?: boolean;
}

/** Fields used of a member (https://docs.gitlab.com/api/project_members/). */
interface Member {
  readonly access_level?: number;
  readonly state?: string;
}

/** Fields used of a commit (https://docs.gitlab.com/api/commits/#get-a-single-commit). */
interface Commit {
  readonly parent_ids?: readonly string[] | null;
}

/** Pages of 100 notes, the newest first, that are looked through. */
const pageLimit = 10;
/** Most characters of a status's description. */
const descriptionLimit = 255;
const reactions: Readonly<Record<Reaction, string>> = {
  eyes: "eyes",
  "+1": "thumbsup",
  "-1": "thumbsdown",
  rocket: "rocket",
  confused: "confused",
};
const states = { pending: "running", success: "success", failure: "failed" } as const;

/** Answers on GitLab (https://docs.gitlab.com/api/notes/, https://docs.gitlab.com/api/discussions/). */
export function createGitLabFeedback(api: GitLabApi): Feedback {
  const { host, call, readLog } = api;
  return {
    comment: (address, subject, comment, signal) =>
      post(api, address, { subject, send: `${pathOf(subject)}/notes` }, comment, signal),
    reply(address, { subject, id }, comment, signal) {
      const send = `${pathOf(subject)}/discussions/${encodeURIComponent(id)}/notes`;
      return post(api, address, { subject, send }, comment, signal);
    },
    async resolve(address, { subject, id }, signal) {
      // Threads of issues can't be resolved by the API.
      if (subject.kind === "issue") return false;
      const path = `${pathOf(subject)}/discussions/${encodeURIComponent(id)}`;
      const answer = await call(address, "PUT", path, signal, { body: { resolved: true } });
      expectStatus(host, answer, [200], "resolution of a thread");
      return true;
    },
    async readThread(address, { subject, commentId, threadId }, signal) {
      if (threadId !== null) {
        const answer = await call(
          address,
          "GET",
          `${pathOf(subject)}/discussions/${encodeURIComponent(threadId)}`,
          signal,
        );
        if (answer.status !== 200 && answer.status !== 404) throw refusedBy(host, answer, "thread of comments");
        const { individual_note: isAlone, notes = [] } = answer.status === 404 ? {} : (answer.body as Discussion);
        if (isAlone !== true && notes.length > 0) return earlierIn(notes.filter(isSaid).map(listedComment), commentId);
      }
      // Those on lines, and what GitLab notes of changes, are in the list, too.
      const said: Note[] = [];
      const before = () => earlierIn(said.toReversed().map(listedComment), commentId);
      for (let page = 1, seen = 0; page <= mostEarlier.pages; page += 1) {
        const query = `order_by=created_at&sort=desc&per_page=100&page=${page}`;
        const answer = await call(address, "GET", `${pathOf(subject)}/notes?${query}`, signal);
        if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
        const listed = answer.body as readonly Note[];
        // New ones move others to the next page.
        const known = new Set(said.map(({ id }) => id));
        said.push(...listed.filter((note) => isSaid(note) && isForAll(note) && !known.has(note.id)));
        seen += listed.length;
        if (before().length >= mostEarlier.comments || hasNextPage(answer, seen) !== true) break;
      }
      return before();
    },
    add: (address, number, addition, signal) => addOnGitLab(api, address, number, addition, signal),
    async react(address, { subject, commentId }, reaction, signal) {
      const note = commentId === null ? "" : `/notes/${encodeURIComponent(commentId)}`;
      const path = `${pathOf(subject)}${note}/award_emoji`;
      const answer = await call(address, "POST", path, signal, { body: { name: reactions[reaction] } });
      // GitLab says with a 404 that it is there.
      if (/already been taken/iu.test(wordsOf(answer.body))) return true;
      expectStatus(host, answer, [201], "reaction");
      return true;
    },
    async setStatus(address, sha, { state, name, description, url }, signal) {
      const body = { state: states[state], name, description: description.slice(0, descriptionLimit), target_url: url };
      const answer = await call(address, "POST", `/statuses/${encodeURIComponent(sha)}`, signal, { body });
      // As GitLab says of a status that is the same already.
      if (answer.status === 400 && /cannot transition status/iu.test(wordsOf(answer.body))) return;
      expectStatus(host, answer, [200, 201], "commit status");
    },
    readLogEnd: (address, job, bytes, signal) =>
      readLog(address, `/jobs/${encodeURIComponent(job)}/trace`, bytes, signal),
    async failedJobs(address, { kind, id }, signal) {
      if (kind !== "pipeline") return [];
      const path = `/pipelines/${encodeURIComponent(id)}/jobs?per_page=100&scope[]=failed`;
      const answer = await call(address, "GET", path, signal);
      const jobs = answer.status === 200 ? (answer.body as readonly GitLabJob[] | null) : null;
      // The others are no reason why it failed.
      return failedIn(jobs?.filter((each) => each.allow_failure !== true));
    },
    async parentsOf(address, sha, signal) {
      const answer = await call(address, "GET", `/repository/commits/${encodeURIComponent(sha)}`, signal);
      if (answer.status === 404) return [];
      expectStatus(host, answer, [200], "commit");
      return ((answer.body ?? {}) as Commit).parent_ids ?? [];
    },
    async mayWrite(address, { id }, signal) {
      // With rights by a group, and by one that the project is shared with.
      const answer = await call(address, "GET", `/members/all/${encodeURIComponent(id)}`, signal);
      if (answer.status === 403) return null;
      if (answer.status === 404 && !/project/iu.test(wordsOf(answer.body))) return false;
      if (answer.status !== 200) throw refusedBy(host, answer, "question for a person's rights");
      const { access_level: level = 0, state } = (answer.body ?? {}) as Member;
      return state === "active" && level >= developer;
    },
  };
}

const isSaid = ({ system }: Note): boolean => system !== true;
const isForAll = ({ type, confidential, internal }: Note): boolean =>
  type !== "DiffNote" && confidential !== true && internal !== true;
const listedComment = ({ id, author, body }: Note): ListedComment => ({
  id: String(id),
  author: author?.username ?? null,
  text: body,
});

function pathOf({ kind, number }: Subject): string {
  return `/${kind === "issue" ? "issues" : "merge_requests"}/${number}`;
}

function post(
  { host, webUrl, call }: GitLabApi,
  address: RepositoryAddress,
  { subject, send }: { readonly subject: Subject; readonly send: string },
  comment: NewComment,
  signal: AbortSignal,
) {
  const read = (note: unknown): ForgeComment => {
    const { id } = note as Note;
    return { id: String(id), url: `${webUrl}/${pathOn(webUrl, address)}/-${pathOf(subject)}#note_${id}` };
  };
  /** Notes of threads are in the list, too. The newest come first, so the last one found is the oldest. */
  async function find(): Promise<ForgeComment | null> {
    let oldest: Note | null = null;
    for (let page = 1, seen = 0; page <= pageLimit; page += 1) {
      const query = `order_by=created_at&sort=desc&per_page=100&page=${page}`;
      const answer = await call(address, "GET", `${pathOf(subject)}/notes?${query}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "list of comments");
      const listed = answer.body as readonly Note[];
      oldest = oldestWithMark(listed, comment.key) ?? oldest;
      seen += listed.length;
      const isOlder = Date.parse(listed.at(-1)?.created_at ?? "") < lookFrom(comment).getTime();
      if (isOlder || hasNextPage(answer, seen) !== true) break;
    }
    return oldest === null ? null : read(oldest);
  }
  const api = {
    host,
    find,
    read,
    send: (body: string) => call(address, "POST", send, signal, { body: { body: withoutQuickActions(body) } }),
  };
  return postOnce(api, comment, signal);
}
