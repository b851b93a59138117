import { setTimeout as pause } from "node:timers/promises";
import { withCommentMark } from "../domain/repositories/comment-mark.ts";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import { backoffMs } from "../domain/time/backoff.ts";
import { ForgeUnavailable, type ForgeAnswer } from "./http.ts";
import { refusedBy } from "./refusal.ts";

/** What is talked about. */
export interface Subject {
  readonly kind: "issue" | "pullRequest";
  readonly number: number;
}

/** A thread of comments, as deliveries name it (`comment.threadId`). */
export interface Thread {
  readonly subject: Subject;
  readonly id: string;
}

/** What a reaction is to: the subject itself, or a comment on it. */
export interface ReactionTarget {
  readonly subject: Subject;
  readonly commentId: string | null;
  /** Whether it is a comment on lines of the change, which GitHub counts apart. */
  readonly isOnLines: boolean;
}

/** The reactions that all forges have. */
export type Reaction = "eyes" | "+1" | "-1" | "rocket" | "confused";

/** A comment to post once. */
export interface NewComment {
  /** Of this comment alone, and not known to anybody before it is posted: a random UUID. */
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
}

/** Somebody, by the forge's stable id and the present name. */
export interface Person {
  readonly id: string;
  readonly login: string;
}

/** What is shown at a commit. */
export interface CommitStatus {
  readonly state: "pending" | "success" | "failure";
  /** Tells it from others at the same commit: a later one with the same name replaces it. */
  readonly name: string;
  readonly description: string;
  readonly url: string;
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
  /** Nothing happens if the reaction is there. */
  react(address: RepositoryAddress, target: ReactionTarget, reaction: Reaction, signal: AbortSignal): Promise<void>;
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
   * Whether a person may write to the repository now. False also for somebody else who has the name by now.
   * @returns null if the forge does not tell this token
   */
  mayWrite(address: RepositoryAddress, person: Person, signal: AbortSignal): Promise<boolean | null>;
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

/** What differs between the forges. */
interface CommentApi {
  readonly host: string;
  /** Looks for the comment with the key. */
  readonly find: () => Promise<ForgeComment | null>;
  /** Asks for it, whose answer is 201 if it was posted. */
  readonly send: (body: string) => Promise<ForgeAnswer>;
  readonly read: (body: unknown) => ForgeComment;
}

/** Looks, asks, and looks again if the answer is lost: see `Feedback`. */
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

/** @throws SessionError if the answer is none of these */
export function expectStatus(host: string, answer: ForgeAnswer, statuses: readonly number[], what: string): void {
  if (!statuses.includes(answer.status)) throw refusedBy(host, answer, what);
}
