import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { createTokenBucket } from "../domain/time/token-bucket.ts";

/** A tool that the service offers the agent of a session, as the Model Context Protocol describes one. */
export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** The answer of a tool to the agent. */
export interface ToolAnswer {
  readonly text: string;
  /** Whether the text says why nothing was done. */
  readonly isError: boolean;
}

/** Does what an agent asks of a tool. Never rejects. @param input what the agent sent, which nothing has checked */
export type CallTool = (name: string, input: unknown) => Promise<ToolAnswer>;

/** Begin of the paths of tools on the gateway. */
export const toolPrefix = "/tools";

/** Bytes of one call. */
const callLimit = 64 * 1024;
/** Calls at once, and `perSecond` more in each second: each is a transaction, and no agent needs as many. */
const burst = 50;
const perSecond = 5;
/** Calls under way at once. */
const mostAtOnce = 4;

/**
 * Serves tools to a sandbox: `GET /tools` lists them, `POST /tools/call` with `name` and `arguments` calls one. A call is answered
 * with 200 and a `ToolAnswer`, also if the tool refuses.
 * @param token what a request must carry: without an isolating sandbox, other sessions reach the relay
 */
export function createToolServer(options: {
  readonly tools: readonly ToolDescription[];
  readonly token: string;
  readonly call: CallTool;
}): (request: IncomingMessage, response: ServerResponse) => void {
  const { tools, token, call } = options;
  const pace = createTokenBucket(burst, perSecond);
  let underWay = 0;

  async function answer(request: IncomingMessage): Promise<{ readonly status: number; readonly body: unknown }> {
    if (request.headers.authorization !== `Bearer ${token}`)
      return { status: 401, body: "the session's token is missing" };
    if (request.method === "GET" && request.url === toolPrefix) return { status: 200, body: { tools } };
    if (request.method !== "POST" || request.url !== `${toolPrefix}/call`)
      return { status: 404, body: "there is no such operation of tools here" };
    const asked = await readCall(request);
    if (asked === null) return refused(`a call must be a JSON object of at most ${callLimit / 1024} KiB`);
    const { name, input } = asked;
    if (!tools.some((tool) => tool.name === name)) return refused("there is no such tool");
    if (underWay >= mostAtOnce) return refused(`at most ${mostAtOnce} calls may be under way at once`);
    underWay += 1;
    try {
      const waitMs = pace.take();
      if (waitMs > 0) await pause(waitMs);
      return { status: 200, body: await call(name, input) };
    } finally {
      underWay -= 1;
    }
  }

  return (request, response) => {
    answer(request).then(
      ({ status, body }) =>
        response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body)),
      // The client hung up while it sent.
      () => response.destroy(),
    );
  };
}

function refused(text: string): { readonly status: number; readonly body: ToolAnswer } {
  return { status: 200, body: { text, isError: true } };
}

/** Null if it is too large or no call. */
async function readCall(request: IncomingMessage): Promise<{ readonly name: string; readonly input: unknown } | null> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    // Read the rest all the same: a client that still sends does not read the answer.
    if (bytes <= callLimit) pieces.push(piece);
  }
  if (bytes > callLimit) return null;
  try {
    const body: unknown = JSON.parse(Buffer.concat(pieces).toString("utf8"));
    if (body === null || typeof body !== "object" || !("name" in body) || typeof body.name !== "string") return null;
    return { name: body.name, input: "arguments" in body ? body.arguments : {} };
  } catch {
    return null;
  }
}
