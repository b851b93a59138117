import { cutAtWord } from "../fields/text.ts";
import { quoted } from "./harmless.ts";

/**
 * The last message about a session that was sent to its event's origin (a thread of Slack, an issue): a link to it
 * (`started`), its result (`ended`), or that it is completed after a retry (`completed`).
 */
export type ReplyStage = "started" | "ended" | "completed";

/** The fields of a session that decide the reply about it. */
export interface RepliedSession {
  readonly status: string;
  readonly summary: string | null;
  readonly failure: { readonly reason: string } | null;
  /** Whether its agent has begun: until then a gate may filter the run, which is not reported. */
  readonly hasBegun: boolean;
  readonly pullRequestUrls: readonly string[];
}

/** The reply to send now. `wait`: check again soon. Null: nothing until the status changes. */
export type ToSay = { readonly said: ReplyStage; readonly text: string } | "wait" | null;

const longestSummary = 1_500;
const longestReason = 500;

/**
 * The reply about a session: a link when its agent begins, the result at its end, and a completion after a retry; each
 * once. Links are on separate lines. Texts of agents and others are shown literally, without effects: in Markdown an
 * image would be fetched, and the address of a person's page would notify that person.
 * @param link address of its page
 * @param isMarkdown whether the service reads the text as Markdown
 */
export function whatToSay(session: RepliedSession, said: ReplyStage | null, link: string, isMarkdown: boolean): ToSay {
  const { status, hasBegun } = session;
  const result = (): string => resultOf(session, link, isMarkdown ? codeBlock : (words) => words);
  switch (status) {
    case "queued":
    case "running":
    case "waiting":
      if (said !== null) return null;
      if (!hasBegun) return status === "running" ? "wait" : null;
      return { said: "started", text: paragraphs("Offstage is working on it.", link) };
    case "completed":
      return said === "completed" || !hasBegun ? null : { said: "completed", text: result() };
    case "failed":
      return said === "ended" || said === "completed" ? null : { said: "ended", text: result() };
    case "cancelled":
      return said === "started" || (said === null && hasBegun) ? { said: "ended", text: result() } : null;
    default:
      return null;
  }
}

/**
 * The reply about a run that failed before it had a session, at its event's origin.
 * @param reason a sentence for readers
 * @param isMarkdown whether the service reads the text as Markdown
 */
export function whatToSayOfFailedRun(reason: string, isMarkdown: boolean): string {
  const words = cut(reason, longestReason);
  return paragraphs("Offstage could not begin.", isMarkdown ? codeBlock(words) : words);
}

const longestComment = 20_000;

/**
 * The comment about a session at the issue or pull request that its event is about: its result, once, when it is
 * completed. No person there asked for it, so there is no comment while it works, or if it fails. The agent's words are
 * a quotation without effects.
 * @param link address of its page
 */
export function whatToComment(
  { status, summary, hasBegun, pullRequestUrls }: RepliedSession,
  said: ReplyStage | null,
  link: string,
): Exclude<ToSay, "wait"> {
  if (status !== "completed" || !hasBegun || said !== null) return null;
  const words = (summary ?? "").trim();
  const opened = httpUrls(pullRequestUrls).join(", ");
  const text = paragraphs(
    `The result of an automation of Offstage ([session](${link}))${opened === "" ? "" : `, in ${opened}`}:`,
    words === "" ? "" : quoted(cut(words, longestComment), longestComment + 2),
  );
  return { said: "completed", text };
}

function httpUrls(urls: readonly string[]): string[] {
  return urls.filter((url) => /^https?:\/\/\S+$/u.test(url));
}

function resultOf(session: RepliedSession, link: string, literal: (words: string) => string): string {
  const { status, summary, failure, pullRequestUrls } = session;
  const links = [...httpUrls(pullRequestUrls), link];
  if (status === "cancelled") return paragraphs("Offstage was told to stop working on it.", link);
  if (status === "completed") {
    return paragraphs("Offstage is done.", literal(cut(summary ?? "", longestSummary)), ...links);
  }
  return paragraphs("Offstage could not do it.", literal(cut(failure?.reason ?? "", longestReason)), ...links);
}

function cut(text: string, most: number): string {
  const clean = text.trim();
  return clean.length <= most ? clean : `${cutAtWord(clean, most)} …`;
}

/** A code block whose code fence is longer than any in it (CommonMark 0.31, section 4.5). */
function codeBlock(words: string): string {
  if (words === "") return "";
  const longest = Math.max(2, ...[...words.matchAll(/`+/gu)].map(([run]) => run.length));
  const codeFence = "`".repeat(longest + 1);
  return `${codeFence}text\n${words}\n${codeFence}`;
}

const paragraphs = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join("\n\n");
