import type { RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Subject } from "../forge-trial.ts";

/** A comment as the forge lists it. */
export interface ListedComment {
  readonly id: string;
  readonly body: string;
}

/** What a person and a program of CI do on a forge, in plain requests: as the product's adapter would, it would be its own. */
export interface LoopForge {
  /** Says something in the pull request's conversation. @returns what it is known by */
  comment(pullRequest: number, body: string): Promise<string>;
  /** Whether the forge shows that a comment was seen. */
  isSeen(pullRequest: number, comment: string): Promise<boolean>;
  /** All comments beside a pull request that a list of 100 shows, also those that answer others. */
  comments(pullRequest: number): Promise<readonly ListedComment[]>;
  /** Threads on lines of a change; null: the forge delivers none. */
  readonly threads: LoopThreads | null;
  /** Asks for changes with these words, as whose token it is. */
  askForChanges(pullRequest: number, words: string): Promise<void>;
  /** Reports that a check of a commit failed; null: the forge takes no reports of other programs' checks. */
  readonly failCheck: ((check: FailedCheck) => Promise<void>) | null;
}

/** What a person does in a thread on a line of a change. */
export interface LoopThreads {
  /** Says something on the first line of a file that the pull request adds. */
  begin(pullRequest: number, place: { readonly path: string; readonly sha: string }, body: string): Promise<LoopThread>;
  /** Whether the forge shows that what began the thread was seen. */
  isSeen(pullRequest: number, thread: LoopThread): Promise<boolean>;
  /** What followed in the thread, at most 100. */
  replies(pullRequest: number, thread: LoopThread): Promise<readonly ListedComment[]>;
}

/** A thread, by the ids that the forge gave. */
export interface LoopThread {
  readonly id: string;
  /** The comment that began it. */
  readonly comment: string;
}

/** A check that a program ran over a commit. */
export interface FailedCheck {
  readonly sha: string;
  readonly branch: string;
  readonly name: string;
  readonly description: string;
}

/** Who talks to Offstage, and where. */
export interface LoopPlace {
  readonly settings: Subject["settings"];
  readonly address: RepositoryAddress;
}
