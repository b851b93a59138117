import type { ReplyTarget } from "../domain/automations/reply-target.ts";
import { cutMiddle } from "../domain/fields/text.ts";
import { callService, type ServiceAnswer, wordsOf } from "./call-service.ts";
import { type Reply, type ReplyCall, ReplyRefused, ReplyUnavailable, type SentReply } from "./reply.ts";

type Thread = Extract<ReplyTarget, { service: "slack" }>;

/** Slack recommends at most 4,000 characters (https://docs.slack.dev/reference/methods/chat.postMessage); some are for our mark. */
const longestText = 3_800;
/** By this, and by our id in its payload, a message is known as the one that was asked for. */
const mark = "offstage_reply";
const pageSize = 200;
/** Most pages of a thread that are looked through: 4,000 messages. */
const mostPages = 20;

/**
 * Errors that pass (https://docs.slack.dev/reference/methods/chat.postMessage#errors), and whether Slack may have written the
 * message all the same: it says so of two. Any other error is its last word.
 */
const passing: ReadonlyMap<string, { readonly isOpen: boolean }> = new Map([
  ["ratelimited", { isOpen: false }],
  ["rate_limited", { isOpen: false }],
  ["message_limit_exceeded", { isOpen: false }],
  ["request_timeout", { isOpen: false }],
  ["service_unavailable", { isOpen: true }],
  ["team_added_to_org", { isOpen: false }],
  ["internal_error", { isOpen: true }],
  ["fatal_error", { isOpen: true }],
]);

/** Remedies for common errors. */
const remedies: Readonly<Record<string, string>> = {
  not_in_channel: "invite the app to the channel",
  channel_not_found: "invite the app to the channel, and check that its token is of the same workspace",
  is_archived: "the channel is archived",
  invalid_auth: "give the automation the app's present bot token",
  token_revoked: "give the automation the app's present bot token",
  account_inactive: "install the app again, and give the automation its bot token",
};

/**
 * Slack, by `chat.postMessage` in a thread. Slack has no key that makes a repeated request safe, so each message has our id in its
 * metadata, and before a repeated attempt the thread is looked through for it. Scopes: `chat:write`, and to look through the
 * thread `channels:history` (`groups:history`, `im:history`, `mpim:history` for the other kinds).
 * @param apiUrl with a slash at its end, such as `https://slack.com/api/`
 */
export function createSlackReply(apiUrl: string): Reply<Thread> {
  return {
    async send(target, text, call) {
      const found = call.isRepeated ? await find(apiUrl, target, call) : null;
      return found ?? (await post(apiUrl, target, text, call));
    },
  };
}

async function post(
  apiUrl: string,
  target: Thread,
  text: string,
  { id, token, signal }: ReplyCall,
): Promise<SentReply> {
  const answer = await callService("Slack", `${apiUrl}chat.postMessage`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: {
      channel: target.channel,
      thread_ts: target.threadId,
      text: escaped(cutMiddle(text, longestText)),
      // An agent's words may hold anything: nothing in them calls people or is fetched.
      mrkdwn: false,
      parse: "none",
      link_names: false,
      unfurl_links: false,
      unfurl_media: false,
      metadata: { event_type: mark, event_payload: { id } },
    },
    signal,
  });
  const { ts } = okOf(answer) as { ts?: unknown };
  if (typeof ts !== "string") throw new ReplyUnavailable("Slack", "its answer has no ts", { isOpen: true });
  return { id: ts, url: null };
}

/** A message of Slack, as far as it is read. */
interface FoundMessage {
  readonly ts?: unknown;
  readonly metadata?: { readonly event_type?: unknown; readonly event_payload?: { readonly id?: unknown } };
}

/** The message that an earlier attempt wrote; null if there is none. */
async function find(apiUrl: string, target: Thread, { id, token, signal }: ReplyCall): Promise<SentReply | null> {
  let cursor = "";
  for (let page = 1; page <= mostPages; page += 1) {
    const query = new URLSearchParams({
      channel: target.channel,
      ts: target.threadId,
      limit: String(pageSize),
      include_all_metadata: "true",
      ...(cursor !== "" && { cursor }),
    });
    const request = { method: "GET", headers: { authorization: `Bearer ${token}` }, signal } as const;
    const answer = await lookUp(`${apiUrl}conversations.replies?${query.toString()}`, request);
    const { messages, response_metadata: next } = answer as {
      messages?: unknown;
      response_metadata?: { next_cursor?: unknown };
    };
    const found = (Array.isArray(messages) ? (messages as (FoundMessage | null)[]) : []).find(
      (message) => message?.metadata?.event_type === mark && message.metadata.event_payload?.id === id,
    );
    if (typeof found?.ts === "string") return { id: found.ts, url: null };
    cursor = typeof next?.next_cursor === "string" ? next.next_cursor : "";
    if (cursor === "") return null;
  }
  return null;
}

/** Sends a read, which never writes: so after any failure it stays open whether an earlier attempt wrote. */
async function lookUp(url: string, request: Parameters<typeof callService>[2]): Promise<object> {
  try {
    return okOf(await callService("Slack", url, request));
  } catch (error) {
    if (error instanceof ReplyRefused) {
      const problem = `an earlier attempt may have arrived, and the thread can't be looked through for it (${error.problem})`;
      throw new ReplyRefused("Slack", problem);
    }
    if (!(error instanceof ReplyUnavailable)) throw error;
    throw new ReplyUnavailable("Slack", error.problem, { isOpen: true, retryAfterMs: error.retryAfterMs });
  }
}

/** The body of an answer that says `ok`: Slack answers most errors with 200. */
function okOf({ status, body }: ServiceAnswer): object {
  const answer = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  if (answer["ok"] === true) return answer;
  const error = typeof answer["error"] === "string" ? answer["error"] : null;
  if (error === null) {
    if (status >= 300) throw new ReplyRefused("Slack", `it answered ${status}`);
    throw new ReplyUnavailable("Slack", "its answer is not in the documented form", { isOpen: true });
  }
  const known = passing.get(error);
  if (known !== undefined) throw new ReplyUnavailable("Slack", wordsOf(error), known);
  const scope = error === "missing_scope" ? `the app needs the scope ${wordsOf(answer["needed"])}` : null;
  const remedy = scope ?? (Object.hasOwn(remedies, error) ? remedies[error] : null);
  throw new ReplyRefused("Slack", [wordsOf(error), remedy].filter((words) => typeof words === "string").join(": "));
}

/**
 * The three characters of Slack's markup as entities
 * (https://docs.slack.dev/messaging/formatting-message-text#escaping). An address on a separate line becomes a link,
 * which shows it as it is.
 */
function escaped(text: string): string {
  const plain = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return plain.replaceAll(/^https?:\/\/[^\s|]+$/gmu, "<$&>");
}
