import { setTimeout as pause } from "node:timers/promises";
import type { CommentPlace, Earlier } from "../../domain/conversations/facts.ts";
import type { CommitStatus, IdScope, Reaction, ReactionTarget, Subject, Thread } from "../../domain/answers/answer.ts";
import { withCommentMark } from "../../domain/repositories/comment-mark.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import type { PullRequestAddition, PullRequestField } from "../../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { backoffMs } from "../../domain/time/backoff.ts";
import { ForgeUnavailable, type ForgeAnswer } from "../http/http.ts";
import { refusedBy, wordsOf } from "../http/refusal.ts";

/** A comment to post once. */
export interface NewComment {
  /** Unique to this comment, and secret until it is posted: a random UUID. */
  readonly key: string;
  /** Markdown. */
  readonly text: string;
  /** When the key was made: the comment is not looked for among older ones. */
  readonly since: Date;
}

/** A comment on the forge. */
export interface ForgeComment {
  readonly id: string;
  readonly url: string | null;
  /** Among which of the repository's comments no other has the id: see `IdScope`. Omitted: among all. */
  readonly idScope?: IdScope;
}

/** A person, by the forge's stable id and the current name. */
export interface Person {
  readonly id: string;
  readonly login: string;
}

/**
 * How Offstage answers on a forge. Calls throw the errors that `Forge` names; each can be repeated. A text is Markdown, posted as it
 * is: only marks of our own, and what GitLab would carry out (its quick actions), are made harmless.
 */
export interface Feedback {
  /**
   * Posts a comment unless there is one with its key: looks before, and again if the answer is lost. A caller that died between
   * asking and recording the answer waits for `settleMs` before it calls again, since forges list what is new a little later.
   * `created` is false if it was there before the call.
   */
  comment(
    address: RepositoryAddress,
    subject: Subject,
    comment: NewComment,
    signal: AbortSignal,
  ): Promise<ForgeComment & { readonly created: boolean }>;
  /** As `comment`, in a thread of a review. Gitea has no call for that: there it is a comment on the pull request. */
  reply(
    address: RepositoryAddress,
    thread: Thread,
    comment: NewComment,
    signal: AbortSignal,
  ): Promise<ForgeComment & { readonly created: boolean }>;
  /**
   * Marks a thread of a review as resolved; nothing happens if it is.
   * @returns false if the forge has no call for it: the thread stays open
   */
  resolve(address: RepositoryAddress, thread: Thread, signal: AbortSignal): Promise<boolean>;
  /**
   * Gives a pull request labels, reviewers or assignees in addition to those that it has.
   * @throws SessionError pull_request_refused that names those which the forge does not take, or can't have, in its words; the others
   * are set
   */
  add(address: RepositoryAddress, number: number, addition: PullRequestAddition, signal: AbortSignal): Promise<void>;
  /**
   * Nothing happens if the reaction is there.
   * @returns false if the forge has no such reaction to such a thing: nothing was done
   */
  react(address: RepositoryAddress, target: ReactionTarget, reaction: Reaction, signal: AbortSignal): Promise<boolean>;
  /** The last one for a name counts. */
  setStatus(address: RepositoryAddress, sha: string, status: CommitStatus, signal: AbortSignal): Promise<void>;
  /**
   * The end of a CI job's log, from the beginning of a line.
   * @param job the forge's id of it
   * @param bytes at most so many
   * @returns null if the log is gone, or not there yet, or too long to be read (see `readLogEnd` in logs.ts)
   */
  readLogEnd(address: RepositoryAddress, job: string, bytes: number, signal: AbortSignal): Promise<string | null>;
  /**
   * The CI jobs that failed of a check, the first ones if there are many. Omitted: this forge has none that can be listed.
   * @param check as events name it: `kind` says what `id` is of; of some kinds there are no jobs
   */
  failedJobs?(address: RepositoryAddress, check: EndedCheck, signal: AbortSignal): Promise<readonly CiJob[]>;
  /**
   * The place of a comment on a pull request. Omitted: deliveries of this forge have all of it.
   * @returns null if it is on no lines, or they are gone
   */
  readPlace?(address: RepositoryAddress, comment: DeliveredComment, signal: AbortSignal): Promise<CommentPlace | null>;
  /**
   * Earlier comments, the oldest first: in a comment's thread, or in the conversation if it is in none, as far as the
   * forge lists them. At most 30, each cut to 4,000 characters; none if it is the first, or gone.
   */
  readThread(address: RepositoryAddress, comment: AnsweringComment, signal: AbortSignal): Promise<readonly Earlier[]>;
  /**
   * The parents of a commit; none if there is no such commit. Omitted: this forge's checks are of commits of branches,
   * never of merges that it made.
   */
  parentsOf?(address: RepositoryAddress, sha: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Whether a person may write to the repository now. False also if another account has the name by now.
   * @returns null if the forge does not show it to this token
   */
  mayWrite(address: RepositoryAddress, person: Person, signal: AbortSignal): Promise<boolean | null>;
}

/** A comment that may answer others. */
export interface AnsweringComment {
  readonly subject: Subject;
  readonly commentId: string;
  readonly threadId: string | null;
  readonly isOnLines: boolean;
}

/** A comment of a thread, as a forge lists it. */
export interface ListedComment extends Omit<Earlier, "text"> {
  readonly id: string;
  readonly text: string | null | undefined;
}

/**
 * Most earlier comments that a prompt gets, and most characters of each; and most pages of 100, the newest first, in
 * which they are searched for.
 */
export const mostEarlier = { comments: 30, characters: 4_000, pages: 5 };

const byNumber = new Intl.Collator("en", { numeric: true });

/**
 * The comments of a thread before one of them. A list that lags may have later ones and not this one: forges number
 * comments in their order.
 * @param thread the oldest first
 */
export function earlierIn(thread: readonly ListedComment[], commentId: string): Earlier[] {
  const at = thread.findIndex(({ id }) => id === commentId);
  const before = at === -1 ? thread.filter(({ id }) => byNumber.compare(id, commentId) < 0) : thread.slice(0, at);
  return before
    .flatMap(({ author, text }) => (text == null || text.trim() === "" ? [] : [{ author, text }]))
    .slice(-mostEarlier.comments)
    .map(({ author, text }) => ({ author, text: text.slice(0, mostEarlier.characters).toWellFormed() }));
}

/** A comment on a pull request, as far as its delivery says where it is. */
export interface DeliveredComment {
  readonly number: number;
  readonly threadId: string | null;
  readonly path: string | null;
  readonly line: number | null;
}

/** A check, as events name it. */
export interface EndedCheck {
  readonly kind: string;
  readonly id: string;
  /** The commit that was checked. */
  readonly sha: string;
}

/** A job of a CI run. */
export interface CiJob {
  /** As `readLogEnd` takes it. */
  readonly id: string;
  readonly name: string;
}

/** Reads the end of a log at a path below a repository of the forge's API. */
export type LogReader = (
  address: RepositoryAddress,
  path: string,
  bytes: number,
  signal: AbortSignal,
) => Promise<string | null>;

/** How long after a request whose answer is lost the comment may be missing in the forge's lists, in ms. */
export const settleMs = 15_000;
const looking = { fromMs: 500, toMs: 4_000, jitter: 0.5 };
/** By how much a forge's clock may differ from ours, in ms. */
const clockMs = 5 * 60_000;

/** The differences between the forges. */
interface CommentApi {
  readonly host: string;
  /** Searches for the comment with the key. */
  readonly find: () => Promise<ForgeComment | null>;
  /** Asks for it, whose answer is 201 if it was posted. */
  readonly send: (body: string) => Promise<ForgeAnswer>;
  readonly read: (body: unknown) => ForgeComment;
}

/** Searches, posts, and searches again if the answer is lost: see `Feedback`. */
export async function postOnce(
  { host, find, send, read }: CommentApi,
  { key, text }: NewComment,
  signal: AbortSignal,
): Promise<ForgeComment & { readonly created: boolean }> {
  const before = await find();
  if (before !== null) return { ...before, created: false };
  const lost = await send(withCommentMark(text, key)).then(
    (answer) => {
      if (answer.status !== 201) throw refusedBy(host, answer, "comment");
      return read(answer.body);
    },
    (error: unknown) => {
      if (error instanceof ForgeUnavailable && error.isOpen) return error;
      throw error;
    },
  );
  if (!(lost instanceof ForgeUnavailable)) return { ...lost, created: true };
  const until = performance.now() + settleMs;
  for (let look = 1; ; look += 1) {
    const posted = await find();
    if (posted !== null) return { ...posted, created: true };
    if (performance.now() >= until) throw lost;
    await pause(backoffMs(look, looking), undefined, { signal });
  }
}

/** From when on a comment is looked for, by the forge's clock. */
export function lookFrom({ since }: NewComment): Date {
  return new Date(since.getTime() - clockMs);
}

/** Fields used of a job, as GitHub and Gitea (`conclusion`) and GitLab (`status`) have them. */
export interface RunJob {
  readonly id: number;
  readonly name?: string;
  readonly conclusion?: string | null;
  readonly status?: string;
}

/** Those of a list that failed. */
export function failedIn(jobs: readonly RunJob[] | null | undefined): CiJob[] {
  const failures = new Set(["failure", "failed", "timed_out", "startup_failure"]);
  return (jobs ?? [])
    .filter(({ conclusion, status }) => failures.has(conclusion ?? status ?? ""))
    .map(({ id, name }) => ({ id: String(id), name: name ?? "" }));
}

/** @throws SessionError if the answer is none of these */
export function expectStatus(host: string, answer: ForgeAnswer, statuses: readonly number[], what: string): void {
  if (!statuses.includes(answer.status)) throw refusedBy(host, answer, what);
}

/** A name that the forge does not take, and why. */
export type RefusedName = readonly [name: string, words: string];

/**
 * Sets names one by one, so that one which the forge does not take keeps out no other.
 * @param set returns why the forge does not take it, in its words; null: it is set
 */
export async function addEach(
  host: string,
  { field, names }: PullRequestAddition,
  set: (name: string) => Promise<string | null>,
): Promise<void> {
  const refused: RefusedName[] = [];
  for (const name of new Set(names)) {
    const words = await set(name);
    if (words !== null) refused.push([name, words]);
  }
  requireTaken(host, field, refused);
}

/** @throws SessionError if there are some */
export function requireTaken(host: string, field: PullRequestField, refused: readonly RefusedName[]): void {
  if (refused.length === 0) return;
  throw notTaken(`${host} did not take ${field}: ${refused.map(([name, words]) => `${name} (${words})`).join(", ")}.`);
}

/** The refusal of what a forge's pull requests don't have. */
export function hasNone(host: string, field: PullRequestField): SessionError {
  return notTaken(`${host} can't set ${field}: its pull requests have none.`);
}

function notTaken(reason: string): SessionError {
  const remedy = "Change them on the pull request, and in the automation or request that names them.";
  return new SessionError({ code: "pull_request_refused", reason, retryable: false, remedy });
}

/**
 * A forge's refusal of one name; null if it took it. @throws SessionError if that is about the token, or the repository
 */
export function wordsIfRefused(
  host: string,
  answer: ForgeAnswer,
  taken: readonly number[],
  what: string,
): string | null {
  if (taken.includes(answer.status)) return null;
  if (answer.status === 401 || answer.status === 403) throw refusedBy(host, answer, what);
  return wordsOf(answer.body);
}
