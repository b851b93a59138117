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

/** OpenAI Chat Completions: what OpenCode and every compatible server speak. */
export const chatCompletions: Dialect = {
  serves: (path) => path.endsWith("/chat/completions"),

  parse(body) {
    const messages: Json[] = body.messages ?? [];
    const said = messages.flatMap((message): Said[] => {
      const text = textOf(message.content);
      if (message.role === "user") return [{ by: "user", text }];
      if (message.role === "assistant") {
        const calls = (message.tool_calls ?? []).map((call: Json): unknown => call.function?.arguments);
        return [{ by: "model", text, calls }];
      }
      return message.role === "tool" ? [{ by: "tool", text }] : [];
    });
    const tools = (body.tools ?? []).map((tool: Json) => toolFrom(tool.function.name, tool.function.parameters));
    const surroundings = messages.map((message) => textOf(message.content)).join("\n");
    return {
      conversation: conversationOf(said, { model: body.model, tools, surroundings }),
      stream: body.stream === true,
    };
  },

  whole(reply) {
    const calls = reply.calls.map((_, index) => callOf(reply, index));
    return {
      ...envelope(reply, "chat.completion"),
      choices: [
        {
          index: 0,
          finish_reason: finishReason(reply),
          message: {
            role: "assistant",
            content: reply.text,
            ...(reply.thought !== "" && { reasoning_content: reply.thought }),
            ...(calls.length > 0 && { tool_calls: calls }),
          },
        },
      ],
      usage: usageOf(reply),
    };
  },

  *pieces(reply) {
    const piece = (delta: Json, finish: string | null = null) => ({
      data: { ...envelope(reply, "chat.completion.chunk"), choices: [{ index: 0, delta, finish_reason: finish }] },
    });
    yield piece({ role: "assistant", content: "" });
    for (const chunk of chunksOf(reply.thought)) yield piece({ reasoning_content: chunk });
    for (const chunk of chunksOf(reply.text)) yield piece({ content: chunk });
    for (const index of reply.calls.keys()) yield piece({ tool_calls: [callOf(reply, index)] });
    yield piece({}, finishReason(reply));
    yield { data: { ...envelope(reply, "chat.completion.chunk"), choices: [], usage: usageOf(reply) } };
    yield { data: "[DONE]" };
  },

  error: (status, message) => ({
    error: { message, type: status === 401 ? "invalid_request_error" : "server_error", code: null },
  }),

  errorEvent: (status, message) => ({ data: chatCompletions.error(status, message) }),
};

function envelope(reply: Reply, object: string) {
  return { id: `chatcmpl-${reply.id}`, object, created: Math.floor(Date.now() / 1_000), model: reply.model };
}

function callOf(reply: Reply, index: number) {
  const call = reply.calls[index];
  return {
    index,
    id: call?.id,
    type: "function",
    function: { name: call?.name, arguments: JSON.stringify(call?.arguments) },
  };
}

function finishReason(reply: Reply): string {
  return reply.calls.length > 0 ? "tool_calls" : "stop";
}

function usageOf({ usage }: Reply) {
  return { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output };
}
