import { expect, it } from "vitest";
import { createUsageReader } from "./usage.ts";

/** Usage of an answer that comes in pieces of so many bytes. */
function usageOf(answer: string, size = 7) {
  const reader = createUsageReader();
  const bytes = Buffer.from(answer);
  for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
  return reader.end();
}

const stream = (...pieces: unknown[]): string =>
  pieces.map((piece) => `event: x\ndata: ${JSON.stringify(piece)}\n\n`).join("");

it.each([
  [
    "Anthropic's stream",
    stream(
      {
        type: "message_start",
        message: {
          model: "claude",
          usage: { input_tokens: 10, cache_read_input_tokens: 100, cache_creation_input_tokens: 5, output_tokens: 1 },
        },
      },
      { type: "content_block_delta", delta: { text: "usage is a word 💥" } },
      { type: "message_delta", usage: { output_tokens: 42 } },
    ),
    {
      model: "claude",
      inputTokens: 10,
      outputTokens: 42,
      cacheReadTokens: 100,
      cacheWriteTokens: 5,
      reasoningTokens: 0,
    },
  ],
  [
    "OpenAI's Responses",
    stream(
      { type: "response.created", response: { model: "gpt", usage: null } },
      {
        type: "response.completed",
        response: {
          model: "gpt",
          usage: {
            input_tokens: 30,
            input_tokens_details: { cached_tokens: 20 },
            output_tokens: 9,
            output_tokens_details: { reasoning_tokens: 4 },
          },
        },
      },
    ),
    { model: "gpt", inputTokens: 10, outputTokens: 9, cacheReadTokens: 20, cacheWriteTokens: 0, reasoningTokens: 4 },
  ],
  [
    "Chat Completions",
    `${stream({ model: "qwen", choices: [], usage: null }, { model: "qwen", choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } })}data: [DONE]\n\n`,
    { model: "qwen", inputTokens: 7, outputTokens: 3, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  ],
  [
    "Gemini, as one document over several lines",
    JSON.stringify(
      {
        modelVersion: "gemini",
        usageMetadata: {
          promptTokenCount: 12,
          candidatesTokenCount: 5,
          cachedContentTokenCount: 2,
          thoughtsTokenCount: 8,
        },
      },
      null,
      2,
    ),
    { model: "gemini", inputTokens: 10, outputTokens: 13, cacheReadTokens: 2, cacheWriteTokens: 0, reasoningTokens: 8 },
  ],
  [
    "Gemini's stream, as a list",
    JSON.stringify(
      [
        { modelVersion: "gemini", candidates: [] },
        { modelVersion: "gemini", usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 5 } },
      ],
      null,
      2,
    ),
    { model: "gemini", inputTokens: 12, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  ],
])("reads what %s says, however it is cut", (_, answer, usage) => {
  for (const size of [1, 7, 1_000_000]) expect(usageOf(answer, size)).toEqual({ ...usage, isWhole: true });
});

it.each(["", "not json", "data: {broken usage", '{"usage":"much"}', '{"error":{"message":"no usage"}}'])(
  "finds nothing in %j",
  (answer) => {
    expect(usageOf(answer)).toBeNull();
  },
);

it("distinguishes a stream that was cut before its end from one that reported its tokens", () => {
  const start = { type: "message_start", message: { model: "c", usage: { input_tokens: 7, output_tokens: 1 } } };
  expect(usageOf(stream(start))).toMatchObject({ inputTokens: 7, isWhole: false });
  expect(usageOf(stream(start, { usage: { output_tokens: 9 } }))).toMatchObject({ outputTokens: 9, isWhole: true });
});

it.each([
  ["what the model says", stream({ choices: [{ delta: { content: '{"usage":{"completion_tokens":1}}' } }] })],
  [
    "what a tool is called with",
    stream({ choices: [{ delta: { usage: { completion_tokens: 1, prompt_tokens: 1 } } }] }),
  ],
  ["counts that are none", stream({ usage: { completion_tokens: -5, prompt_tokens: 1e300, input_tokens: "7" } })],
])("learns nothing from %s", (_, answer) => {
  expect(usageOf(answer)).toBeNull();
});

it("counts what is to be kept in a cache for an hour, which costs more", () => {
  const usage = {
    input_tokens: 1,
    output_tokens: 1,
    cache_creation_input_tokens: 1_000,
    cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 900 },
  };
  expect(usageOf(JSON.stringify({ usage }))).toMatchObject({ cacheWriteTokens: 1_000, cacheHourTokens: 900 });
});

it("keeps nothing of an answer that is one line of 40 MB", () => {
  const reader = createUsageReader();
  const piece = Buffer.alloc(1024 * 1024, "x");
  reader.read(Buffer.from('data: {"choices":[{"delta":{"content":"'));
  const before = process.memoryUsage().heapUsed + process.memoryUsage().external;
  for (let count = 0; count < 40; count += 1) reader.read(piece);
  expect(process.memoryUsage().heapUsed + process.memoryUsage().external - before).toBeLessThan(20 * 1024 * 1024);
  reader.read(Buffer.from('"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'));
  expect(reader.end()).toMatchObject({ inputTokens: 1, outputTokens: 2 });
});
