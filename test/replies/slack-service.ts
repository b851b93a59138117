import { startService, type ServiceCall, type ServiceServer } from "./service-server.ts";

/** A message of a thread. */
interface ThreadMessage {
  readonly ts: string;
  readonly text: string;
  readonly metadata?: unknown;
}

/** A Slack with one channel that has one thread. */
export interface SlackService extends ServiceServer {
  readonly apiUrl: string;
  readonly token: string;
  readonly target: { readonly service: "slack"; readonly channel: string; readonly threadId: string };
  /** What was written into the thread, its first message included. */
  readonly thread: ThreadMessage[];
}

const token = "xoxb-right";
const target = { service: "slack", channel: "C1", threadId: "100.000001" } as const;

/**
 * Starts a Slack on this machine. As https://docs.slack.dev/reference/methods has it, errors are answered with 200 and `ok: false`,
 * a thread comes in pages, and metadata is shown only if it is asked for.
 */
export async function startSlack(): Promise<SlackService> {
  const thread: ThreadMessage[] = [{ ts: target.threadId, text: "please fix it" }];
  const server = await startService((call) => ({ body: answerOf(call, thread) }));
  return Object.assign(server, { apiUrl: `${server.url}/api/`, token, target, thread });
}

function answerOf({ path, query, headers, body }: ServiceCall, thread: ThreadMessage[]): unknown {
  if (headers.authorization !== `Bearer ${token}`) return { ok: false, error: "invalid_auth" };
  const message = body as { channel?: string; thread_ts?: string; text?: string; metadata?: unknown } | null;
  if ((message?.channel ?? query.get("channel")) !== target.channel) return { ok: false, error: "channel_not_found" };
  if ((message?.thread_ts ?? query.get("ts")) !== target.threadId) return { ok: false, error: "thread_not_found" };
  if (path === "/api/chat.postMessage" && message !== null) {
    const ts = `200.${String(thread.length).padStart(6, "0")}`;
    thread.push({ ts, text: message.text ?? "", metadata: message.metadata });
    return { ok: true, channel: target.channel, ts };
  }
  return path === "/api/conversations.replies" ? pageOf(thread, query) : { ok: false, error: "unknown_method" };
}

function pageOf(thread: readonly ThreadMessage[], query: URLSearchParams): unknown {
  const from = Number(query.get("cursor") ?? 0);
  const to = from + Number(query.get("limit"));
  const page = thread.slice(from, to);
  const messages = query.get("include_all_metadata") === "true" ? page : page.map(({ ts, text }) => ({ ts, text }));
  const cursor = to < thread.length ? String(to) : "";
  return { ok: true, messages, has_more: cursor !== "", response_metadata: { next_cursor: cursor } };
}
