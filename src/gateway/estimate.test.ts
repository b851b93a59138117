import { expect, it } from "vitest";
import { createMeasure, estimateUsage } from "./estimate.ts";

const path = "/v1/chat/completions";

it("takes four bytes for a token, and no image for its bytes", () => {
  const body = Buffer.concat([Buffer.from(`${"word ".repeat(800)}"`), Buffer.alloc(20_000_000, "A")]);
  const { inputTokens = 0, outputTokens } = estimateUsage(null, { path, body }, 7) ?? {};
  expect(inputTokens).toBeGreaterThan(1_000);
  expect(inputTokens).toBeLessThan(4_000);
  expect(outputTokens).toBe(7);
});

it("adds nothing to what costs nothing", () => {
  const body = Buffer.from("{}");
  for (const free of ["/v1/messages/count_tokens", "/v1beta/models/g:countTokens", "/v1/models"])
    expect(estimateUsage(null, { path: free, body }, 1_000)).toBeNull();
  expect(estimateUsage(null, { path: "/v1/embeddings", body }, 1_000)?.outputTokens).toBe(0);
});

it.each([1, 7, 1_000_000])(
  "measures the words of a stream and not what is around them, in pieces of %i bytes",
  (size) => {
    const piece = (word: string): string =>
      `data: {"id":"chatcmpl-123456789","choices":[{"delta":{"content":"${word}"}}]}\n\n`;
    const bytes = Buffer.from(`${piece("a")}${piece("x".repeat(4_001)).repeat(10)}data: [DONE]\n\n`);
    const measure = createMeasure();
    for (let at = 0; at < bytes.length; at += size) measure.read(bytes.subarray(at, at + size));
    expect(measure.tokens()).toBe(10_000);
  },
);
