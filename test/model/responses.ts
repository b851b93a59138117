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

/** OpenAI Responses: what Codex speaks. */
export const responses: Dialect = {
  serves: (path) => path.endsWith("/responses"),

  parse(body) {
    const input: Json[] = typeof body.input === "string" ? [{ role: "user", content: body.input }] : (body.input ?? []);
    const said = input.flatMap((item): Said[] => {
      if (item.role === "user") return [{ by: "user", text: textOf(item.content) }];
      if (item.role === "assistant") return [{ by: "model", text: textOf(item.content) }];
      if (item.type?.endsWith("_call") === true)
        return [{ by: "model", text: "", calls: [item.arguments ?? item.input] }];
      return item.type?.endsWith("_call_output") === true ? [{ by: "tool", text: textOf(item.output) }] : [];
    });
    const tools = (body.tools ?? [])
      .filter((tool: Json) => tool.type === "function")
      .map((tool: Json) => toolFrom(tool.name, tool.parameters));
    const surroundings = [body.instructions ?? "", ...input.map((item) => textOf(item.content))].join("\n");
    return {
      conversation: conversationOf(said, { model: body.model, tools, surroundings }),
      stream: body.stream === true,
    };
  },

  whole: (reply) => responseOf(reply, "completed", itemsOf(reply)),

  *pieces(reply) {
    let sequence = 0;
    const piece = (type: string, rest: Json) => ({
      event: type,
      data: { type, sequence_number: (sequence += 1), ...rest },
    });
    yield piece("response.created", { response: responseOf(reply, "in_progress", []) });
    for (const [output_index, item] of itemsOf(reply).entries()) {
      const started =
        item.type === "message" ? { ...item, status: "in_progress", content: [] } : { ...item, arguments: "" };
      yield piece("response.output_item.added", { output_index, item: started });
      const place = { output_index, item_id: item.id };
      if (item.type === "message") {
        const part = { ...place, content_index: 0 };
        yield piece("response.content_part.added", {
          ...part,
          part: { type: "output_text", text: "", annotations: [] },
        });
        for (const delta of chunksOf(reply.text)) yield piece("response.output_text.delta", { ...part, delta });
        yield piece("response.output_text.done", { ...part, text: reply.text });
        yield piece("response.content_part.done", { ...part, part: item.content[0] });
      } else {
        yield piece("response.function_call_arguments.delta", { ...place, delta: item.arguments });
        yield piece("response.function_call_arguments.done", { ...place, arguments: item.arguments });
      }
      yield piece("response.output_item.done", { output_index, item });
    }
    yield piece("response.completed", { response: responseOf(reply, "completed", itemsOf(reply)) });
  },

  error: (status, message) => ({
    error: { message, type: status === 401 ? "invalid_request_error" : "server_error", code: null, param: null },
  }),

  errorEvent: (status, message) => ({
    event: "response.failed",
    data: {
      type: "response.failed",
      response: { status: "failed", error: { code: status === 401 ? "invalid_api_key" : "server_error", message } },
    },
  }),
};

function itemsOf(reply: Reply): Json[] {
  const content = [{ type: "output_text", text: reply.text, annotations: [] }];
  const message = { type: "message", id: `msg_${reply.id}`, role: "assistant", status: "completed", content };
  const calls = reply.calls.map((call) => ({
    type: "function_call",
    id: `fc_${call.id}`,
    call_id: call.id,
    name: call.name,
    arguments: JSON.stringify(call.arguments),
    status: "completed",
  }));
  return reply.text === "" ? calls : [message, ...calls];
}

function responseOf(reply: Reply, status: string, output: Json[]) {
  return {
    id: `resp_${reply.id}`,
    object: "response",
    created_at: Math.floor(Date.now() / 1_000),
    status,
    model: reply.model,
    output,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    temperature: null,
    top_p: null,
    usage: {
      input_tokens: reply.usage.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: reply.usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: reply.usage.input + reply.usage.output,
    },
  };
}
