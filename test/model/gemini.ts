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

/** Google's Generative Language API: what Gemini CLI speaks. */
export const gemini: Dialect = {
  serves: (path) => /:(?:streamG|g)enerateContent$/u.test(path),

  parse(body, path) {
    const contents: Json[] = body.contents ?? [];
    const said = contents.flatMap((content): Said[] => {
      const parts: Json[] = content.parts ?? [];
      if (content.role === "model") {
        const calls = parts.flatMap((part): unknown[] =>
          part.functionCall === undefined ? [] : [part.functionCall.args],
        );
        return [{ by: "model", text: textOf(parts), calls }];
      }
      const results = parts.filter((part) => part.functionResponse !== undefined);
      if (results.length > 0) {
        return results.map((part) => ({ by: "tool", text: JSON.stringify(part.functionResponse.response) }));
      }
      return [{ by: "user", text: textOf(parts) }];
    });
    const declared: Json[] = (body.tools ?? []).flatMap((tool: Json) => tool.functionDeclarations ?? []);
    const tools = declared.map((tool) => toolFrom(tool.name, tool.parametersJsonSchema ?? tool.parameters));
    const surroundings = [
      textOf(body.systemInstruction?.parts),
      ...contents.map((content) => textOf(content.parts)),
    ].join("\n");
    const model = /models\/([^:/]+):/u.exec(path)?.[1] ?? "";
    return { conversation: conversationOf(said, { model, tools, surroundings }), stream: path.includes(":stream") };
  },

  whole: (reply) => chunkOf(reply, partsOf(reply), true),

  *pieces(reply) {
    for (const part of partsOf(reply)) {
      if (part.text === undefined) yield { data: chunkOf(reply, [part], false) };
      else for (const text of chunksOf(part.text)) yield { data: chunkOf(reply, [{ ...part, text }], false) };
    }
    yield { data: chunkOf(reply, [], true) };
  },

  error: (status, message) => ({
    error: { code: status, message, status: status === 401 ? "UNAUTHENTICATED" : "INTERNAL" },
  }),

  errorEvent: (status, message) => ({ data: gemini.error(status, message) }),
};

function partsOf(reply: Reply): Json[] {
  return [
    ...(reply.thought === "" ? [] : [{ text: reply.thought, thought: true }]),
    ...(reply.text === "" ? [] : [{ text: reply.text }]),
    ...reply.calls.map((call) => ({ functionCall: { id: call.id, name: call.name, args: call.arguments } })),
  ];
}

function chunkOf(reply: Reply, parts: Json[], last: boolean) {
  const { input, output } = reply.usage;
  return {
    responseId: reply.id,
    modelVersion: reply.model,
    candidates: [{ index: 0, content: { role: "model", parts }, ...(last && { finishReason: "STOP" }) }],
    usageMetadata: { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output },
  };
}
