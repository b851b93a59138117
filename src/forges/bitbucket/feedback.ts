import type { RepositoryCall } from "../forge.ts";
import { createHash } from "node:crypto";
import type { Subject } from "../../domain/answers/answer.ts";
import type { Earlier } from "../../domain/conversations/facts.ts";
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
} from "../feedback/feedback.ts";
import { commentWithMark, withReferenceMarks } from "../feedback/reference-marks.ts";
import { hunkTo, readHunks } from "../feedback/diff-hunk.ts";
import { refusedBy } from "../http/refusal.ts";
import { addOnBitbucket } from "./pull-request-fields.ts";
import { queryText, readPages } from "./pages.ts";
import type { RepositoryPermission } from "./repository.ts";

interface BitbucketApi {
  readonly host: string;
  readonly call: RepositoryCall;
  readonly readLog: LogReader;
  /** Asks who may do what with a repository. */
  readonly permissions: RepositoryCall;
}

/** Fields used of a comment (https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/). */
interface Comment {
  readonly id: number;
  readonly content?: { readonly raw?: string };
  readonly created_on: string;
  readonly deleted?: boolean;
  readonly user?: { readonly nickname?: string; readonly display_name?: string } | null;
  readonly parent?: { readonly id?: number } | null;
  /** Only of comments on lines. */
  readonly inline?: unknown;
  readonly links?: { readonly html?: { readonly href?: string } };
}

/** Fields used of a step of a pipeline (https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pipelines/). */
interface Step {
  readonly uuid?: string;
  /** Given, though the published description does not have it. */
  readonly name?: string;
  readonly state?: { readonly result?: { readonly name?: string } };
}

/** Fields used of a pull request. */
interface PullRequestCommits {
  readonly source?: { readonly commit?: { readonly hash?: string } };
  readonly destination?: { readonly commit?: { readonly hash?: string } };
}

/** Most bytes of the diff of one file that are read. */
const mostOfDiff = 1024 ** 2;
/** Pages of 100 comments, the newest first, that are looked through. */
const pageLimit = 10;
/** Most characters of a status's key, and of its name and description. */
const [keyLimit, textLimit] = [40, 255];
const states = { pending: "INPROGRESS", success: "SUCCESSFUL", failure: "FAILED" } as const;

/** Answers on Bitbucket Cloud. */
export function createBitbucketFeedback(api: BitbucketApi): Feedback {
  const { host, call, readLog, permissions } = api;
  return {
    comment: (address, subject, comment, signal) => post(api, address, { subject, thread: null }, comment, signal),
    reply: (address, { subject, id }, comment, signal) => post(api, address, { subject, thread: id }, comment, signal),
    async resolve(address, { subject, id }, signal) {
      if (subject.kind === "issue") return false;
      const path = `${pathOf(subject)}/${encodeURIComponent(id)}/resolve`;
      const answer = await call(address, "POST", path, signal);
      // 409: it is resolved.
      expectStatus(host, answer, [200, 409], "resolution of a thread");
      return true;
    },
    add: (address, number, addition, signal) => addOnBitbucket(api, address, number, addition, signal),
    // The API has no reactions.
    react: () => Promise.resolve(false),
    async setStatus(address, sha, { state, name, description, url }, signal) {
      const body = {
        key: keyOf(name),
        name: name.slice(0, textLimit),
        state: states[state],
        description: description.slice(0, textLimit),
        url,
      };
      const answer = await call(address, "POST", `/commit/${encodeURIComponent(sha)}/statuses/build`, signal, { body });
      expectStatus(host, answer, [200, 201], "commit status");
    },
    async readLogEnd(address, job, bytes, signal) {
      const [pipeline = "", step = await lastStep(api, address, pipeline, signal)] = job.split("/");
      if (step === null) return null;
      const path = `/pipelines/${encodeURIComponent(pipeline)}/steps/${encodeURIComponent(step)}/log`;
      return readLog(address, path, bytes, signal);
    },
    async failedJobs(address, { kind, id }, signal) {
      // Keys of other programs' builds are numbers at most by chance, and then of no pipeline.
      if (kind !== "status" || !/^\d+$/u.test(id)) return [];
      const steps = (await stepsOf(api, address, id, signal)) ?? [];
      return steps.flatMap((step, index) =>
        hasFailed(step) && step.uuid !== undefined
          ? [{ id: `${id}/${step.uuid}`, name: step.name ?? `step ${index + 1}` }]
          : [],
      );
    },
    async readPlace(address, { number, path, line }, signal) {
      if (path === null) return null;
      const answer = await call(address, "GET", `/pullrequests/${number}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      const { source, destination } = (answer.body ?? {}) as PullRequestCommits;
      const [from, into] = [source?.commit?.hash, destination?.commit?.hash];
      if (line === null || from === undefined || into === undefined) return { path, line, hunk: null };
      // The changes of merging the first into the second.
      const query = new URLSearchParams({ path, topic: "true" });
      const diff = await readLog(address, `/diff/${from}..${into}?${query.toString()}`, mostOfDiff, signal);
      return { path, line, hunk: diff === null ? null : hunkTo(readHunks(diff), line) };
    },
    async readThread(address, { subject, commentId, threadId }, signal) {
      const isAlone = threadId === null || threadId === commentId;
      const all = new Map<string, Comment>();
      /** The first one of a comment's thread, as far as it is listed. */
      const rootOf = (id: string): string => {
        const above = all.get(id)?.parent?.id;
        return above === undefined || above >= Number(id) ? id : rootOf(String(above));
      };
      function before(): Earlier[] {
        const root = isAlone ? null : rootOf(threadId);
        const asking = all.get(commentId);
        const isBefore = ({ id, parent, inline }: Comment): boolean =>
          root === null ? asking?.inline == null && inline == null && parent == null : rootOf(String(id)) === root;
        const said = [...all.values()].filter((each) => each.deleted !== true && isBefore(each)).toReversed();
        return earlierIn(said.map(listedComment), commentId);
      }
      const query = new URLSearchParams({ sort: "-created_on", pagelen: "100" });
      const asked = { address, path: pathOf(subject), query, pages: mostEarlier.pages };
      for await (const page of readPages(call, asked, signal)) {
        if ("refused" in page) throw refusedBy(host, page.refused, "list of comments");
        for (const each of page.items as readonly Comment[]) all.set(String(each.id), each);
        // One that begins a thread on lines has none before it.
        const isWhole = isAlone ? all.get(commentId)?.inline != null : all.has(rootOf(threadId));
        if (isWhole || before().length >= mostEarlier.comments) break;
      }
      return before();
    },
    async mayWrite(address, { id }, signal) {
      const field = /^\{[0-9a-f-]{36}\}$/iu.test(id) ? "uuid" : "account_id";
      const query = new URLSearchParams({ q: `user.${field} = ${queryText(id)}`, pagelen: "100" });
      for await (const page of readPages(permissions, { address, path: "", query, pages: pageLimit }, signal)) {
        if ("refused" in page) {
          // Only who administers the repository may ask about others.
          if (page.refused.status === 403) return null;
          throw refusedBy(host, page.refused, "question for a person's rights");
        }
        const listed = page.items as readonly RepositoryPermission[];
        const found = listed.find(({ user }) => user?.[field] === id);
        if (found !== undefined) return ["write", "admin"].includes(found.permission ?? "");
      }
      return false;
    },
  };
}

/** The key of a status, by which a later one replaces it. */
function keyOf(name: string): string {
  return name.length <= keyLimit ? name : createHash("sha256").update(name).digest("hex").slice(0, keyLimit);
}

/**
 * The step of a pipeline whose log is of interest: the last one that failed, else the last one.
 * @returns null if there is no such pipeline, or the id is that of something else
 */
async function lastStep(
  api: BitbucketApi,
  address: RepositoryAddress,
  pipeline: string,
  signal: AbortSignal,
): Promise<string | null> {
  const steps = (await stepsOf(api, address, pipeline, signal)) ?? [];
  return (steps.findLast(hasFailed) ?? steps.at(-1))?.uuid ?? null;
}

function hasFailed({ state }: Step): boolean {
  return state?.result?.name === "FAILED" || state?.result?.name === "ERROR";
}

/** @returns null if there is no such pipeline, or the id is that of something else */
async function stepsOf(
  { host, call }: BitbucketApi,
  address: RepositoryAddress,
  pipeline: string,
  signal: AbortSignal,
): Promise<Step[] | null> {
  const path = `/pipelines/${encodeURIComponent(pipeline)}/steps`;
  const steps: Step[] = [];
  const query = new URLSearchParams({ pagelen: "100" });
  for await (const page of readPages(call, { address, path, query, pages: pageLimit }, signal)) {
    if ("refused" in page) {
      if (page.refused.status === 404 || page.refused.status === 400) return null;
      throw refusedBy(host, page.refused, "steps of a pipeline");
    }
    steps.push(...(page.items as readonly Step[]));
  }
  return steps;
}

const listedComment = ({ id, user, content }: Comment): ListedComment => ({
  id: String(id),
  author: user?.nickname ?? user?.display_name ?? null,
  text: content?.raw,
});

function pathOf({ kind, number }: Subject): string {
  return `/${kind === "issue" ? "issues" : "pullrequests"}/${number}/comments`;
}

function post(
  { host, call }: BitbucketApi,
  address: RepositoryAddress,
  { subject, thread }: { readonly subject: Subject; readonly thread: string | null },
  comment: NewComment,
  signal: AbortSignal,
) {
  const read = (given: unknown): ForgeComment => {
    const { id, links } = given as Comment;
    return { id: String(id), url: links?.html?.href ?? null, idScope: subject.kind };
  };
  /** The newest come first, so the last one found is the oldest. Those of threads are in the list, too. */
  async function find(): Promise<ForgeComment | null> {
    let oldest: Comment | null = null;
    const query = new URLSearchParams({ sort: "-created_on", pagelen: "100" });
    const asked = { address, path: pathOf(subject), query, pages: pageLimit };
    for await (const page of readPages(call, asked, signal)) {
      if ("refused" in page) throw refusedBy(host, page.refused, "list of comments");
      const listed = page.items as readonly Comment[];
      const shown = listed.filter(({ deleted }) => deleted !== true);
      const bodies = shown.map((each) => ({ ...each, body: commentWithMark(each.content?.raw ?? "") }));
      oldest = oldestWithMark(bodies, comment.key) ?? oldest;
      if (Date.parse(listed.at(-1)?.created_on ?? "") < lookFrom(comment).getTime()) break;
    }
    return oldest === null ? null : read(oldest);
  }
  const parent = thread === null ? {} : { parent: { id: Number(thread) } };
  const send = (text: string) =>
    call(address, "POST", pathOf(subject), signal, {
      body: { content: { raw: withReferenceMarks(text) }, ...parent },
    });
  return postOnce({ host, find, read, send }, comment, signal);
}
