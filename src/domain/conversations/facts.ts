import type { RunEnd } from "./answers.ts";
import type { Conversation, ConversationSubject, FailedCheck } from "./conversation.ts";

/** The place of a comment on a change. */
export interface CommentPlace {
  readonly path: string;
  readonly line: number | null;
  /** The hunk up to the commented line; null: it can't be read. */
  readonly hunk: string | null;
}

/** An earlier comment in the same thread or conversation. */
export interface Earlier {
  /** Null: unknown. */
  readonly author: string | null;
  readonly text: string;
}

/** The facts that a decision needs, as of its transaction. */
export interface ConversationFacts {
  /** Ms since the epoch. */
  readonly now: number;
  /** A new id for a run: of its message, session or job. */
  readonly newId: () => string;
  readonly subject: ConversationSubject;
  /** Of a saying: whether it was taken up before. */
  readonly isTaken: boolean;
  /** Of a saying: whether this Offstage posted it, under whichever name. */
  readonly isOwn: boolean;
  /** Of a saying: whether its author may write to the repository; null: the forge does not say. */
  readonly mayWrite: boolean | null;
  /** Of a push: whether the session made the commit. */
  readonly isOwnCommit: boolean;
  /** Of a review: whether its dismissal or withdrawal was delivered since. */
  readonly isDismissed: boolean;
  /** Of a vote that was taken back: whether a new request for changes by the same person was delivered since. */
  readonly isAskedAgain: boolean;
  /** Of a review that was dismissed: ids of the conversation's runs whose message no turn has taken, and no turn takes meanwhile. */
  readonly waitingRuns: ReadonlySet<string>;
  /** Of a check: those of the commit whose end was delivered since, because deliveries are decided in any order. */
  readonly endedLater: readonly FailedCheck[];
  /** State of the session's pull request; null: it is not a session's, or the conversation is an issue's. */
  readonly pullRequest: "open" | "merged" | "closed" | null;
  /** The session that works on it; null: there is none, or it is gone. */
  readonly session: {
    readonly status: "draft" | "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
    readonly pushedSha: string | null;
    /** The commit that it is pushing, or pushed last: known before the push, which is recorded after it. */
    readonly pushingSha: string | null;
    /** Commits that it began to push after `pushedSha`: a worker may have died before it recorded one of them as pushed. */
    readonly begunShas: readonly string[];
    /** Whether all its pull requests were merged or closed, and there was one. */
    readonly isOver: boolean;
  } | null;
  /** The cost of all sessions of the conversation, in dollars. */
  readonly spentUsd: number;
  /** Whether an automation can be started by this name. */
  readonly isMacro: (macro: string) => boolean;
  /** Ends of logs, by the check's id. */
  readonly logs: ReadonlyMap<string, string>;
  /** Places of kept comments, by their keys: of forges that don't deliver them. */
  readonly places: ReadonlyMap<string, CommentPlace>;
  /** Earlier comments in the threads of kept comments, by their keys; those that begin a thread are missing. */
  readonly threads: ReadonlyMap<string, readonly Earlier[]>;
  /** How runs ended, by their ids; those that are missing have not. */
  readonly ends: ReadonlyMap<string, RunEnd>;
}

/** Where an answer goes. */
export interface AnsweredThread {
  /** Null: it is a comment on the pull request or issue. */
  readonly threadId: string | null;
  /** The thread's place, such as `src/a.ts, line 3`; null: unknown, or it is on nothing. */
  readonly place: string | null;
  /** Whether not everybody may read the thread: it is answered nowhere else. */
  readonly isConfidential: boolean;
}

/** An effect to carry out, in the same transaction. */
export type Effect =
  | {
      readonly type: "react";
      readonly key: string;
      /** Null: the issue, the pull request, or a review of it. */
      readonly commentId: string | null;
      readonly isOnLines: boolean;
      readonly reviewId: string | null;
      /** Whether there are others for the same saying, so that one is enough. */
      readonly isMinor: boolean;
    }
  | ({ readonly type: "answer"; readonly key: string; readonly text: string } & AnsweredThread)
  /** Resolves a thread once its answer is there. @property after the answer's key */
  | { readonly type: "resolve"; readonly key: string; readonly threadId: string; readonly after: string }
  | { readonly type: "followUp"; readonly runId: string; readonly text: string; readonly mergesTarget: boolean }
  /** Takes back a follow-up that no turn has taken. */
  | { readonly type: "withdraw"; readonly withdrawnId: string }
  | { readonly type: "session"; readonly runId: string; readonly title: string; readonly text: string }
  | { readonly type: "macro"; readonly runId: string; readonly macro: string };

/** The outcome of a happening. */
export interface Decided {
  readonly conversation: Conversation;
  readonly effects: readonly Effect[];
  /** Key that is taken by it, so that it is never taken up again; null: it left nothing. */
  readonly takes: string | null;
  /** Keys of what was only kept until now, and is taken with it; omitted: none. */
  readonly takesKept?: readonly string[];
  /** Null: something was started, or gathered for what is started soon. */
  readonly reason: string | null;
}
