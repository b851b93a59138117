import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import type { ModelProviders } from "../domain/model.ts";
import type { ModelGateway } from "./model-gateway.ts";
import { modelOf, routeModelRequest } from "./model-routes.ts";
import type { Exchange } from "./recording.ts";
import { createUsageReader } from "./usage.ts";

/**
 * Answers requests of models from a recording, each recorded answer once, without asking anybody. Harnesses ask in
 * parallel, and put times and paths into what they ask: an answer is found by what was asked of whom and how far the
 * conversation was, and among those that fit by its place.
 */
export function createReplay(recording: readonly Exchange[]): {
  gateway(models: ModelProviders): ModelGateway;
  /** Answers that nothing asked for yet. */
  left(): number;
} {
  const left = [...recording];
  return { gateway: (models) => createReplayGateway(models, left), left: () => left.length };
}

/** @param left what is answered is taken out of it */
function createReplayGateway(models: ModelProviders, left: Exchange[]): ModelGateway {
  let lastActivity = performance.now();
  let answered = 0;
  let failed = 0;
  let lastError: string | null = null;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = routeModelRequest(models, request);
    const body = await buffer(request);
    lastActivity = performance.now();
    const asked = route === null ? null : { ...route, model: modelOf(route, body), body: body.toString("utf8") };
    const found = asked === null ? undefined : find(left, { ...asked, method: request.method ?? "GET" });
    if (found === undefined) {
      failed += 1;
      lastError = `the recording has no further answer for ${request.method} ${request.url}`;
      response.writeHead(404, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ error: { message: lastError } }));
      return;
    }
    left.splice(left.indexOf(found), 1);
    if (found.status < 400) answered += 1;
    else failed += 1;
    lastError = found.status < 400 ? null : `HTTP ${found.status}`;
    response.writeHead(found.status, found.contentType === "" ? {} : { "Content-Type": found.contentType });
    const reader = createUsageReader();
    for (const chunk of found.chunks) {
      const bytes = Buffer.from(chunk, "base64");
      reader.read(bytes);
      response.write(bytes);
    }
    response.end();
  }

  return {
    traffic: () => ({ lastActivity, lastAnswer: lastActivity, answered, failed, lastError }),
    serve: (request, response) => void serve(request, response).catch(() => response.destroy()),
  };
}

type Asked = Pick<Exchange, "provider" | "method" | "path" | "model" | "body">;

function find(left: readonly Exchange[], asked: Asked): Exchange | undefined {
  const fitting = left.filter(
    (exchange) =>
      exchange.provider === asked.provider &&
      exchange.method === asked.method &&
      exchange.path === asked.path &&
      exchange.model === asked.model,
  );
  const shape = shapeOf(asked.body);
  return fitting.find((exchange) => shapeOf(exchange.body) === shape) ?? fitting[0];
}

/** How many messages a conversation has, and whether tools are offered: a request for a title has neither. */
function shapeOf(body: string): string {
  try {
    const { messages, input, contents, tools } = JSON.parse(body) as Record<string, unknown>;
    const conversation = [messages, input, contents].find(Array.isArray);
    return `${conversation?.length ?? 0} ${Array.isArray(tools) && tools.length > 0}`;
  } catch {
    return "";
  }
}
