import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../../domain/errors/errors.ts";
import { createBodyCheck } from "../bodies/check.ts";
import { operations, type OperationName } from "../bodies/operations.ts";
import { RequestRefusedError } from "../refusal.ts";
import { idleTraffic } from "../traffic.ts";
import { answerRefusal } from "./answer-error.ts";
import { isToken, presentedToken, type ModelGateway, type ModelGatewayOptions } from "./model-gateway.ts";
import { readBody } from "./read-body.ts";
import { routeModelRequest } from "./routes.ts";

const text = "Ready.";

/**
 * Answers requests to models without a provider: with one word, in the form of each operation. Nothing is forwarded,
 * counted, billed or recorded. A harness that is warmed up before there is a session for it asks this.
 */
export function createCannedGateway({
  models,
  permits,
  token,
}: Pick<ModelGatewayOptions, "models" | "permits" | "token">): ModelGateway {
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operation, pathModel } = routeModelRequest(models, request);
    if (operation === null) return sendJson(response, { object: "list", data: [], models: [] });
    const check = createBodyCheck({ operation: operations[operation], pathModel, permits });
    const { understood } = await readBody(request, check, { bytes: 0 });
    const answer = answers[operation];
    if (answer === undefined) throw new RequestRefusedError(404, "there is no session yet that could ask for this");
    const made = answer(pathModel ?? understood.model ?? "");
    const asStream = understood.stream || (request.url ?? "").includes(":streamGenerateContent");
    if (!asStream || made.pieces.length === 0) return sendJson(response, made.whole);
    if (operation === "geminiContent" && !/[?&]alt=sse/u.test(request.url ?? ""))
      return sendJson(response, made.pieces);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const piece of made.pieces) {
      const name = typeof piece === "object" && "type" in piece ? `event: ${String(piece.type)}\n` : "";
      response.write(`${name}data: ${typeof piece === "string" ? piece : JSON.stringify(piece)}\n\n`);
    }
    response.end();
  }

  return {
    traffic: idleTraffic,
    idle: () => Promise.resolve(),
    serve(request, response) {
      if (!isToken(presentedToken(request), token))
        return answerRefusal(response, 401, "this is not the session's token");
      return void serve(request, response).catch((error: unknown) =>
        answerRefusal(response, error instanceof RequestRefusedError ? error.status : 502, messageOf(error)),
      );
    },
  };
}

function sendJson(response: ServerResponse, content: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(content));
}

interface Answer {
  readonly whole: object;
  /** The events of a stream; empty: it is never streamed. */
  readonly pieces: readonly (object | string)[];
}

const answers: Readonly<Partial<Record<OperationName, (model: string) => Answer>>> = {
  chat,
  chatOfServer: chat,
  responses,
  messages,
  geminiContent: gemini,
  messageTokens: () => ({ whole: { input_tokens: 1 }, pieces: [] }),
  geminiTokens: () => ({ whole: { totalTokens: 1 }, pieces: [] }),
};

/** https://platform.openai.com/docs/api-reference/chat */
function chat(model: string): Answer {
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const head = { id: "ready", created: 0, model };
  const chunk = (delta: object, finish_reason: string | null) => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason }],
  });
  const message = { role: "assistant", content: text };
  return {
    whole: { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }], usage },
    pieces: [chunk(message, null), { ...chunk({}, "stop"), usage }, "[DONE]"],
  };
}

/** https://platform.openai.com/docs/api-reference/responses-streaming */
function responses(model: string): Answer {
  const part = { type: "output_text", text, annotations: [] };
  const item = { type: "message", id: "msg_ready", role: "assistant", status: "completed", content: [part] };
  const response = (status: string, output: readonly object[]) => ({
    id: "resp_ready",
    object: "response",
    created_at: 0,
    status,
    model,
    output,
    error: null,
    incomplete_details: null,
    usage: {
      input_tokens: 0,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 0,
    },
  });
  const place = { output_index: 0, item_id: item.id };
  const events = [
    { type: "response.created", response: response("in_progress", []) },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...place, content_index: 0, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...place, content_index: 0, delta: text },
    { type: "response.output_text.done", ...place, content_index: 0, text },
    { type: "response.content_part.done", ...place, content_index: 0, part },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: response("completed", [item]) },
  ];
  return {
    whole: response("completed", [item]),
    pieces: events.map((event, index) => ({ ...event, sequence_number: index + 1 })),
  };
}

/** https://docs.anthropic.com/en/api/messages-streaming */
function messages(model: string): Answer {
  const usage = { input_tokens: 0, output_tokens: 0 };
  const message = { id: "msg_ready", type: "message", role: "assistant", model, stop_sequence: null, usage };
  return {
    whole: { ...message, content: [{ type: "text", text }], stop_reason: "end_turn" },
    pieces: [
      { type: "message_start", message: { ...message, content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 0 } },
      { type: "message_stop" },
    ],
  };
}

/** https://ai.google.dev/api/generate-content */
function gemini(modelVersion: string): Answer {
  const whole = {
    responseId: "ready",
    modelVersion,
    candidates: [{ index: 0, content: { role: "model", parts: [{ text }] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 },
  };
  return { whole, pieces: [whole] };
}
