import type { ServerResponse } from "node:http";
import type { Conversation } from "./script.ts";
import type { ToolCall } from "./tools.ts";

/** An answer in no provider's shape yet. */
export interface Reply {
  readonly id: string;
  readonly model: string;
  readonly thought: string;
  readonly text: string;
  readonly calls: readonly (ToolCall & { readonly id: string })[];
  readonly usage: { readonly input: number; readonly output: number };
}

/** One provider's protocol. */
export interface Dialect {
  /** True if a path is this dialect's. */
  serves(path: string): boolean;
  parse(body: Json, path: string): { readonly conversation: Conversation; readonly stream: boolean };
  /** The whole answer, for a request that does not stream. */
  whole(reply: Reply): unknown;
  /** The same in pieces, as server-sent events. */
  pieces(reply: Reply): Iterable<ServerSentEvent>;
  error(status: number, message: string): unknown;
  /** The same in the midst of an answer. */
  errorEvent(status: number, message: string): ServerSentEvent;
}

export interface ServerSentEvent {
  readonly event?: string;
  readonly data: unknown;
}

/** A request's body, read leniently: what is not there is undefined. */
// oxlint-disable-next-line typescript/no-explicit-any -- four providers' request shapes, read field by field
export type Json = any;

/** One message of any dialect, as far as the script cares. */
export interface Said {
  readonly by: "user" | "model" | "tool";
  readonly text: string;
  /** The arguments of the tools that the model called with it. */
  readonly calls?: readonly unknown[];
}

export function conversationOf(
  said: readonly Said[],
  rest: Pick<Conversation, "model" | "tools"> & { readonly surroundings: string },
): Conversation {
  const spoken = said.map((one) => (one.by === "user" ? { ...one, text: withoutWrapping(one.text) } : one));
  const meant = spoken.filter((one) => one.by !== "user" || one.text !== "");
  const last = meant.findLastIndex((one) => one.by === "user");
  const since = meant.slice(last + 1);
  return {
    model: rest.model,
    tools: rest.tools,
    message: meant[last]?.text ?? "",
    userMessages: meant.filter((one) => one.by === "user").map((one) => one.text),
    // One answer may hold several parts or calls: they count once.
    step: since.filter((one, index) => one.by === "model" && since[index - 1]?.by !== "model").length,
    toolResults: since.filter((one) => one.by === "tool").map((one) => one.text),
    calls: said
      .flatMap((one) => one.calls ?? [])
      .map((call) => (typeof call === "string" ? call : JSON.stringify(call))),
    everything: [rest.surroundings, ...said.filter((one) => one.by !== "model").map((one) => one.text)].join("\n"),
    workingDirectory: workingDirectoryIn(rest.surroundings),
  };
}

/** Harnesses put reminders and the state of the machine into the user's mouth. */
function withoutWrapping(text: string): string {
  return text
    .replaceAll(/<(system-reminder|environment_context|session_context|user_instructions)>[\s\S]*?<\/\1>/gu, "")
    .trim();
}

function workingDirectoryIn(text: string): string | null {
  const found = /<cwd>([^<]+)<\/cwd>|working directory:?\s+(\/[^\s`]+)/iu.exec(text);
  return found?.[1] ?? found?.[2] ?? null;
}

/** Text of a message's content, whichever of the usual shapes it has. */
export function textOf(content: Json): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return typeof content?.text === "string" ? content.text : "";
  return content.map((part: Json) => textOf(part)).join("");
}

export function toolFrom(name: string, schema: Json): Conversation["tools"][number] {
  return { name, properties: schema?.properties ?? {}, required: schema?.required ?? [] };
}

/** A few words at a time, as models stream. */
export function chunksOf(text: string): string[] {
  return text.match(/(?:\S+\s*|\s+){1,4}/gu) ?? [];
}

export function sendEvents(response: ServerResponse, events: Iterable<ServerSentEvent>): void {
  beginEvents(response, events);
  response.end();
}

/** Sends the first events, and leaves the answer open. */
export function beginEvents(response: ServerResponse, events: Iterable<ServerSentEvent>): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  writeEvents(response, events);
}

/** Sends more events of an answer that has begun. */
export function writeEvents(response: ServerResponse, events: Iterable<ServerSentEvent>): void {
  for (const { event, data } of events) {
    if (event !== undefined) response.write(`event: ${event}\n`);
    response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }
}
