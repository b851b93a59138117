import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { anthropic } from "./anthropic.ts";
import { chatCompletions } from "./chat-completions.ts";
import { beginEvents, sendEvents, writeEvents, type Dialect, type Json, type Reply } from "./dialect.ts";
import { gemini } from "./gemini.ts";
import { responses } from "./responses.ts";
import { answerOf, type Action, type Conversation, type Script, type ToolAction } from "./script.ts";
import { toolCallFor } from "./tools.ts";

export type { Action, Script } from "./script.ts";

/**
 * A model that answers from a script, at the API of every provider that harnesses speak to: OpenAI (Chat Completions
 * and Responses, below `/v1`), Anthropic (`/v1/messages`) and Gemini (`/v1beta/models/<model>:generateContent`).
 */
export interface ModelServer {
  /** Without a path: `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** Every request for an answer so far, oldest first. */
  readonly requests: readonly ModelRequest[];
  /** Every request of whatever kind so far, with the path as it came. */
  readonly visits: readonly { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: string }[];
  /** Also ends answers that hang. */
  close(): Promise<void>;
}

export interface ModelRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly conversation: Conversation;
}

const dialects: readonly Dialect[] = [chatCompletions, responses, anthropic, gemini];

export async function startModelServer({ script }: { readonly script: Script }): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  const visits: { path: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const closing = new AbortController();
  const server = createServer((request, response) => {
    serve(request, response, { script, requests, visits, signal: closing.signal }).catch((error: unknown) => {
      if (response.headersSent || closing.signal.aborted) response.destroy();
      else sendJson(response, 500, { error: { message: `the scripted model broke: ${String(error)}` } });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    visits,
    async close() {
      if (closing.signal.aborted) return;
      closing.abort();
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

interface Serving {
  readonly script: Script;
  readonly requests: ModelRequest[];
  readonly visits: { path: string; headers: IncomingHttpHeaders; body: string }[];
  readonly signal: AbortSignal;
}

async function serve(request: IncomingMessage, response: ServerResponse, serving: Serving): Promise<void> {
  const sent = await readText(request);
  serving.visits.push({ path: request.url ?? "/", headers: request.headers, body: sent });
  const path = new URL(request.url ?? "/", "http://model").pathname;
  if (request.method === "GET" && path.endsWith("/models")) return sendJson(response, 200, modelList);
  if (path.endsWith("count_tokens")) return sendJson(response, 200, { input_tokens: 100 });
  const dialect = dialects.find((candidate) => candidate.serves(path));
  if (request.method !== "POST" || dialect === undefined) {
    return sendJson(response, 404, { error: { message: `the scripted model does not know ${path}` } });
  }
  const body: Json = JSON.parse(sent);
  const { conversation, stream } = dialect.parse(body, path);
  serving.requests.push({ path, headers: request.headers, body, conversation });
  const actions = answerOf(serving.script, conversation);
  for (const action of actions) {
    if ("hang" in action) return;
    if ("delayMs" in action) await pause(action.delayMs, undefined, { signal: serving.signal });
    if (!("fail" in action)) continue;
    const { status, message, retryAfterSeconds } = action.fail;
    if (retryAfterSeconds !== undefined) response.setHeader("retry-after", String(retryAfterSeconds));
    return sendJson(response, status, dialect.error(status, message));
  }
  const reply = replyOf(actions, conversation, body);
  const broken = actions.find((action) => "cut" in action || "failMidway" in action);
  if (broken !== undefined) {
    const pieces = [...dialect.pieces(reply)];
    beginEvents(response, pieces.slice(0, Math.ceil(pieces.length / 2)));
    if ("cut" in broken) return void response.write("\n", () => response.destroy());
    if ("failMidway" in broken) {
      const { event, data } = dialect.errorEvent(broken.failMidway.status, broken.failMidway.message);
      response.end(`${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`);
    }
    return;
  }
  const held = actions.find((action) => "endsAfter" in action);
  if (stream && held !== undefined) {
    const pieces = [...dialect.pieces(reply)];
    const half = Math.ceil(pieces.length / 2);
    beginEvents(response, pieces.slice(0, half));
    await held.endsAfter;
    writeEvents(response, pieces.slice(half));
    response.end();
    return;
  }
  if (stream) sendEvents(response, dialect.pieces(reply));
  else sendJson(response, 200, dialect.whole(reply));
}

/** Ids follow from the request, so that the same conversation gets the same answer to the letter. */
function replyOf(actions: readonly Action[], conversation: Conversation, body: unknown): Reply {
  const request = JSON.stringify(body);
  const id = createHash("sha256").update(request).digest("hex").slice(0, 16);
  const text = actions.map((action) => ("say" in action ? action.say : "")).join("");
  const thought = actions.map((action) => ("think" in action ? action.think : "")).join("");
  const calls = actions
    .filter(callsTool)
    .map((action, index) => ({ id: `call${id}${index}`, ...toolCallFor(action, conversation) }));
  // About four characters make a token.
  const output = Math.ceil((text.length + thought.length + JSON.stringify(calls).length) / 4);
  return {
    id,
    model: conversation.model,
    thought,
    text,
    calls,
    usage: { input: Math.ceil(request.length / 4), output },
  };
}

function callsTool(action: Action): action is ToolAction {
  return "write" in action || "edit" in action || "read" in action || "shell" in action || "tool" in action;
}

const modelList = { object: "list", data: [{ id: "scripted", object: "model", created: 0, owned_by: "offstage" }] };

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
