import type { Run } from "./conversation.ts";
import { harmless, quoted } from "../answers/harmless.ts";

/** How a run ended. */
export interface RunEnd {
  /** Undelivered: the turn has ended, and its session failed before its work was pushed. */
  readonly status: "completed" | "undelivered" | "failed" | "cancelled";
  /** The pushed commit with the run's work; null: none. */
  readonly pushedSha: string | null;
  readonly commitUrl: string | null;
  readonly pullRequestUrl: string | null;
  /** The agent's last words. */
  readonly summary: string | null;
  /** Why it failed, or was not started, in a sentence. */
  readonly reason: string | null;
  readonly sessionUrl: string | null;
}

/** The answer to those who asked for a run. */
export function answerOf({ pushedSha: before, kind }: Run, end: RunEnd): string {
  const link = end.sessionUrl === null ? "" : ` ([session](${end.sessionUrl}))`;
  // Of a run that has no session: its trigger, its gate or a newer run kept it from being started.
  if (end.status === "cancelled" && end.sessionUrl === null && end.reason !== null)
    return `Nothing was started: ${sentence(end.reason)}`;
  if (end.status === "cancelled") return `This was cancelled${link}.`;
  const reason = sentence(end.reason ?? "the session failed");
  if (end.status === "failed") return `This did not work out${link}: ${reason}`;
  const words = end.summary === null || end.summary.trim() === "" ? "" : `\n\n${quoted(end.summary)}`;
  if (end.status === "undelivered") return `This is done, but not delivered${link}: ${reason}${words}`;
  if (end.pushedSha === null || end.pushedSha === before) return `Nothing was changed${link}.${words}`;
  const short = `\`${end.pushedSha.slice(0, 10)}\``;
  const commit = end.commitUrl === null ? short : `[${short}](${end.commitUrl})`;
  const opened = end.pullRequestUrl !== null && kind !== "followUp" ? `, in ${end.pullRequestUrl}` : "";
  return `Done in ${commit}${opened}${link}.${words}`;
}

/** Whether a run is answered with a comment when it ends. One that red checks or a conflict started is not if it pushed: the commit says it. */
export function isWorthAnswering({ kind, pushedSha: before }: Run, end: RunEnd): boolean {
  const isByItself = kind === "checks" || kind === "conflict";
  if (!isByItself) return true;
  return (
    end.status === "failed" ||
    end.status === "undelivered" ||
    (end.status === "completed" && (end.pushedSha === null || end.pushedSha === before))
  );
}

/**
 * Whether a run pushed a commit to the pull request itself, so that the threads of the review that asked for it can be
 * marked as resolved. False of a run of an automation, which pushes to its own branch, and of one whose work is not
 * delivered.
 */
export function isDoneByCommit({ kind, pushedSha: before }: Run, { status, pushedSha }: RunEnd): boolean {
  return kind === "followUp" && status === "completed" && pushedSha !== null && pushedSha !== before;
}

/** The notice at each bound, sent once. */
export const notices = {
  turns: (limit: number) =>
    `I stop here: ${limit} turns were taken in this conversation, which is its limit. Nothing more is started by comments, reviews or checks.`,
  botTurns: (limit: number) => `I stop answering bots here: they have asked for ${limit} turns, which is the limit.`,
  sessions: (limit: number) =>
    `I start no further session here: ${limit} were started for this issue, which is the limit.`,
  usd: (limit: number) =>
    `I stop here: this conversation has cost its limit of $${limit}. Nothing more is started by comments, reviews or checks.`,
  checks: (limit: number) =>
    `Checks still fail after ${limit} ${limit === 1 ? "round" : "rounds"}, so I stop trying by myself. Tell me what to do, and I go on.`,
  conflicts: (limit: number) =>
    `The branch still collides with its target after ${limit} ${limit === 1 ? "merge" : "merges"}, so I stop merging by myself. Tell me what to do, and I go on.`,
  pushed: () =>
    "Somebody else pushed to this branch, so I stop fixing checks and conflicts by myself. Tell me what to do, and I go on.",
  merged: () => "This pull request is merged, so I do nothing more here. Open an issue, or start a new session.",
  closed: () => "This is closed, so I do nothing more here. Open it again, or start a new session.",
  foreign: () =>
    "I work on pull requests that I opened, and not on this one. Open an issue and mention me there, or start a session.",
  wordless: () =>
    "This review asks for changes, but nothing of what it says has come to me, so I change nothing. Write in a comment what is to be changed, and mention me there.",
} as const;

/** The answer to a macro that no automation has, or that may not be started so. */
export function noSuchMacro(macro: string): string {
  return `There is no automation \`!${harmless(macro)}\` that can be started here.`;
}

function sentence(text: string): string {
  const plain = harmless(text.replaceAll(/\s+/gu, " ").trim()).slice(0, 500);
  return /[.!?]$/u.test(plain) ? plain : `${plain}.`;
}
