import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../../domain/errors/errors.ts";
import { createBodyCheck } from "../bodies/check.ts";
import { operations } from "../bodies/operations.ts";
import { RequestRefusedError } from "../refusal.ts";
import { createTrafficCounter, finalError } from "../traffic.ts";
import { answerRefusal } from "./answer-error.ts";
import type { ModelGateway, ModelGatewayOptions } from "./model-gateway.ts";
import { readBody } from "./read-body.ts";
import type { Exchange } from "./recording.ts";
import { routeModelRequest } from "./routes.ts";

type Reading = Pick<ModelGatewayOptions, "models" | "permits">;

/**
 * Answers requests to models from a recording, each recorded answer once, without network. Harnesses send requests in
 * parallel, with times and paths in them: an answer is found by operation, model and length of the conversation, and
 * among several by its order.
 */
export function createReplay(recording: readonly Exchange[]): {
  gateway(reading: Reading): ModelGateway;
  /** Number of answers that no request has used. */
  left(): number;
} {
  const left = [...recording];
  return { gateway: (reading) => createReplayGateway(reading, left), left: () => left.length };
}

/** @param left recorded answers: each is removed when it is used */
function createReplayGateway(reading: Reading, left: Exchange[]): ModelGateway {
  const traffic = createTrafficCounter();

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const found = find(left, await readReplayRequest(request, reading));
    traffic.touch();
    if (found === undefined)
      throw new RequestRefusedError(404, `the recording has no further answer for ${request.method} ${request.url}`);
    left.splice(left.indexOf(found), 1);
    if (found.status < 400) traffic.answered();
    else traffic.failed(`HTTP ${found.status}`, finalError);
    response.writeHead(found.status, found.contentType === "" ? {} : { "Content-Type": found.contentType });
    for (const chunk of found.chunks) response.write(Buffer.from(chunk, "base64"));
    response.end();
  }

  return {
    traffic: traffic.read,
    idle: () => Promise.resolve(),
    serve: (request, response) =>
      void serve(request, response).catch((error: unknown) => {
        const message = messageOf(error);
        traffic.failed(message, finalError);
        answerRefusal(response, error instanceof RequestRefusedError ? error.status : 502, message);
      }),
  };
}

type ReplayRequest = Pick<Exchange, "provider" | "method" | "path" | "model" | "turns" | "hasTools">;

/** @throws RequestRefusedError as the session's gateway did */
async function readReplayRequest(request: IncomingMessage, { models, permits }: Reading): Promise<ReplayRequest> {
  const { operation, pathModel, provider, path } = routeModelRequest(models, request);
  const wantedExchange = { provider, path, method: request.method ?? "GET" };
  if (operation === null) return { ...wantedExchange, model: null, turns: 0, hasTools: false };
  const check = createBodyCheck({ operation: operations[operation], pathModel, permits });
  const { understood } = await readBody(request, check, { bytes: 0 });
  const { turns, hasTools } = understood;
  return { ...wantedExchange, model: pathModel ?? understood.model, turns, hasTools };
}

/** A request for a title has no tools; the number of messages distinguishes a conversation's requests. */
function find(left: readonly Exchange[], wantedExchange: ReplayRequest): Exchange | undefined {
  const fitting = left.filter(
    (exchange) =>
      exchange.provider === wantedExchange.provider &&
      exchange.method === wantedExchange.method &&
      exchange.path === wantedExchange.path &&
      exchange.model === wantedExchange.model,
  );
  return (
    fitting.find(({ turns, hasTools }) => turns === wantedExchange.turns && hasTools === wantedExchange.hasTools) ??
    fitting[0]
  );
}
