import { approvalWords, type ApprovalRules } from "../repositories/approval.ts";
import type { ConversationFacts } from "./facts.ts";
import type { Conversation, ConversationLimits } from "./conversation.ts";
import { harmless } from "../answers/harmless.ts";

/** A pull request of the same session in another repository. */
export interface OtherPullRequest {
  /** Name of the repository. */
  readonly name: string;
  readonly number: number;
  readonly url: string;
}

/** The facts for our section of a pull request's text. */
export interface SectionFacts {
  readonly sessionUrl: string;
  /** In the order of the session's repositories. */
  readonly others: readonly OtherPullRequest[];
  /** Who may approve it; null: the forge does not say. */
  readonly approval: ApprovalRules | null;
  /** Name of the person in whose name it was opened; null or omitted: Offstage's own account opened it. */
  readonly openedBy?: string | null;
  /** The facts after it was opened; null: it is about to be. */
  readonly loop: LoopFacts | null;
}

/** The feedback loop's work on a pull request, and what it waits for. */
export interface LoopFacts {
  readonly status: NonNullable<ConversationFacts["session"]>["status"];
  /** Messages after the first that the agent has answered. */
  readonly followUps: number;
  /** Whether there are some that it has not. */
  readonly isAsked: boolean;
  /** The session's last commit in this repository. */
  readonly pushedSha: string | null;
  /** Null: there was no event of the pull request that counts. */
  readonly conversation: Conversation | null;
  readonly limits: Pick<ConversationLimits, "checkRounds" | "conflictRounds">;
}

/** Most characters of the list of others, and of one's name: Azure DevOps keeps 4,000 of the whole text. */
const longestList = 1_000;
const longestName = 80;

/**
 * Our section of a pull request's text, in Markdown: what made it, what else that opened, what the feedback loop did, and what it waits
 * for. It is equal for equal facts, and has no more than 2,500 characters.
 *
 * It changes with what people say, with turns and with bounds, each of which is bounded: never with checks alone, since an edit may start
 * checks, whose end would call forth the next edit.
 */
export function sectionText({ sessionUrl, others, approval, openedBy = null, loop }: SectionFacts): string {
  const by = openedBy === null ? null : nothingButName(openedBy);
  const words = approval === null ? null : approvalWords(approval, by);
  const lines = [
    ...(others.length === 0 ? [] : [`It goes with ${listOf(others)}.`]),
    ...(words === null ? [] : [`Who may approve: ${words}.`]),
    ...(loop === null ? [] : [doneIn(loop), roundsOf(loop), nowOf(loop)].filter((line) => line !== null)),
  ];
  const made = `---\nMade by [this Offstage session](${sessionUrl}).`;
  return [made, ...lines.map((line) => `- ${line}`)].join(lines.length === 0 ? "" : "\n");
}

function doneIn({ followUps, pushedSha }: LoopFacts): string | null {
  if (followUps === 0) return null;
  const turns = `${followUps} follow-up${followUps === 1 ? "" : "s"} so far`;
  return pushedSha === null ? `${turns}.` : `${turns}; its last commit here is \`${pushedSha.slice(0, 10)}\`.`;
}

function roundsOf({ conversation, limits }: LoopFacts): string | null {
  if (conversation === null) return null;
  const { checkRounds, conflictRounds } = conversation;
  const rounds = [
    ...(checkRounds === 0 ? [] : [`fixing red checks: ${checkRounds} of ${limits.checkRounds}`]),
    ...(conflictRounds === 0 ? [] : [`merging the target branch: ${conflictRounds} of ${limits.conflictRounds}`]),
  ];
  return rounds.length === 0 ? null : `Rounds in a row, until somebody says something: ${rounds.join(", ")}.`;
}

/** What it waits for, or why it stopped; null: there is nothing to say. */
function nowOf({ status, isAsked, conversation, limits }: LoopFacts): string | null {
  switch (status) {
    case "queued":
    case "running":
      return isAsked ? "It works on what it was asked last." : null;
    case "waiting":
      return "It waits until its budget is raised.";
    case "failed":
      return "It stopped: the session failed, and its page says why.";
    case "cancelled":
      return "It stopped: the session was cancelled.";
    case "completed":
      return conversation === null ? null : restOf(conversation, limits);
    case "draft":
      return null;
  }
}

function restOf({ told, isPushedByOthers }: Conversation, limits: LoopFacts["limits"]): string {
  if (told.includes("turns")) return "It stopped: as many turns were taken here as a conversation may have.";
  if (told.includes("usd")) return "It stopped: this conversation has cost as much as one may.";
  const until = "until somebody who may write here asks it for more";
  if (isPushedByOthers) return `It leaves checks and conflicts alone, since somebody else has pushed, ${until}.`;
  const given = [
    ...(told.includes("checks") ? [`fixing checks after ${limits.checkRounds} in a row`] : []),
    ...(told.includes("conflicts") ? [`merging the target branch after ${limits.conflictRounds} in a row`] : []),
  ];
  if (given.length > 0) return `It stopped ${given.join(" and ")}, ${until}.`;
  return "It waits for comments, reviews and checks.";
}

function listOf(others: readonly OtherPullRequest[]): string {
  const links: string[] = [];
  let length = 0;
  for (const other of others) {
    const link = linkTo(other);
    length += link.length;
    if (length > longestList && links.length > 0) break;
    links.push(link);
  }
  const left = others.length - links.length;
  return `${links.join(", ")}${left === 0 ? "" : ` and ${left} more, which the session names`}`;
}

/** A name without effects in Markdown: it is untrusted. */
function nothingButName(name: string): string {
  const short = name.length > longestName ? `${name.slice(0, longestName).toWellFormed()}…` : name;
  return harmless(short.replaceAll(/\s+/gu, " ")).replaceAll(/[\\[\]`*_~|]/gu, "\\$&");
}

/** A link whose words and address have no other effects in Markdown: the name of a repository is untrusted. */
function linkTo({ name, number, url }: OtherPullRequest): string {
  const words = `${nothingButName(name)} #${number}`;
  const address = url.replaceAll(/[\s()<>[\]\\`]/gu, (mark) => `%${mark.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return address.length > 600 ? words : `[${words}](${address})`;
}
