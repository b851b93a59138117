import {
  chunksOf,
  conversationOf,
  textOf,
  toolFrom,
  type Dialect,
  type Json,
  type Reply,
  type Said,
} from "./dialect.ts";

/** Anthropic Messages: what Claude Code speaks. */
export const anthropic: Dialect = {
  serves: (path) => path.endsWith("/messages"),

  parse(body) {
    const messages: Json[] = body.messages ?? [];
    const said = messages.flatMap((message): Said[] => {
      const blocks: Json[] = Array.isArray(message.content)
        ? message.content
        : [{ type: "text", text: message.content }];
      if (message.role === "assistant") {
        const calls = blocks.filter((block) => block.type === "tool_use").map((block): unknown => block.input);
        return [{ by: "model", text: textOf(blocks), calls }];
      }
      // Claude Code describes the machine in the middle, as the system.
      if (message.role !== "user") return [];
      const results = blocks.filter((block) => block.type === "tool_result");
      // What stands beside a result is the harness's reminder, never the user.
      if (results.length > 0) return results.map((block) => ({ by: "tool", text: textOf(block.content) }));
      return [{ by: "user", text: textOf(blocks) }];
    });
    const tools = (body.tools ?? []).map((tool: Json) => toolFrom(tool.name, tool.input_schema));
    const surroundings = [textOf(body.system), ...messages.map((message) => textOf(message.content))].join("\n");
    return {
      conversation: conversationOf(said, { model: body.model, tools, surroundings }),
      stream: body.stream === true,
    };
  },

  whole: (reply) => ({ ...envelope(reply), content: blocksOf(reply), stop_reason: stopReason(reply) }),

  *pieces(reply) {
    const piece = (type: string, rest: Json = {}) => ({ event: type, data: { type, ...rest } });
    yield piece("message_start", { message: { ...envelope(reply), content: [], stop_reason: null } });
    for (const [index, block] of blocksOf(reply).entries()) {
      const start = block.type === "tool_use" ? { ...block, input: {} } : { ...block, [block.type]: "" };
      yield piece("content_block_start", { index, content_block: start });
      for (const delta of deltasOf(block)) yield piece("content_block_delta", { index, delta });
      yield piece("content_block_stop", { index });
    }
    const delta = { stop_reason: stopReason(reply), stop_sequence: null };
    yield piece("message_delta", { delta, usage: { output_tokens: reply.usage.output } });
    yield piece("message_stop");
  },

  error: (status, message) => ({
    type: "error",
    error: { type: errorTypes[status] ?? "api_error", message },
  }),

  errorEvent: (status, message) => ({ event: "error", data: anthropic.error(status, message) }),
};

const errorTypes: Readonly<Record<number, string>> = { 401: "authentication_error", 529: "overloaded_error" };

function envelope(reply: Reply) {
  return {
    id: `msg_${reply.id}`,
    type: "message",
    role: "assistant",
    model: reply.model,
    stop_sequence: null,
    usage: { input_tokens: reply.usage.input, output_tokens: reply.usage.output },
  };
}

function blocksOf(reply: Reply): Json[] {
  return [
    ...(reply.thought === "" ? [] : [{ type: "thinking", thinking: reply.thought, signature: "scripted" }]),
    ...(reply.text === "" ? [] : [{ type: "text", text: reply.text }]),
    ...reply.calls.map((call) => ({
      type: "tool_use",
      id: `toolu_${call.id}`,
      name: call.name,
      input: call.arguments,
    })),
  ];
}

function deltasOf(block: Json): Json[] {
  if (block.type === "text") return chunksOf(block.text).map((text) => ({ type: "text_delta", text }));
  if (block.type === "tool_use") return [{ type: "input_json_delta", partial_json: JSON.stringify(block.input) }];
  const thinking = chunksOf(block.thinking).map((chunk) => ({ type: "thinking_delta", thinking: chunk }));
  return [...thinking, { type: "signature_delta", signature: block.signature }];
}

function stopReason(reply: Reply): string {
  return reply.calls.length > 0 ? "tool_use" : "end_turn";
}
