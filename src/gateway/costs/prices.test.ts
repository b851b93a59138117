import { expect, test } from "vitest";
import { modelLabel, priceOf } from "./prices.ts";

test.each([
  ["claude-sonnet-5-5-20260901", "claude-sonnet-5"],
  ["models/gemini-3.1-pro-preview", "gemini-3.1-pro"],
  ["qwen3-coder-plus", "qwen"],
  ["house-model", "house-model"],
  [`made-up-${crypto.randomUUID()}`, "other"],
  ["", "other"],
  [null, "none"],
])("metrics call the model %s %s", (model, label) => {
  const own = { "qwen*": { input: 1, output: 1 }, "*": { input: 1, output: 1 } };
  expect(modelLabel(model, own, ["*", "house-model"])).toBe(label);
});

test.each([
  ["claude-opus-4-8", 5],
  ["anthropic/claude-opus-4-8-20260401", 5],
  ["gpt-5", 1.25],
  ["GPT-5-2025-08-07", 1.25],
  ["gpt-5-codex", 1.25],
  ["gpt-5-pro-2025-10-06", 15],
  ["gpt-5.6-sol-pro", 5],
  ["o3-deep-research", 10],
  ["gemini-3.1-pro-preview", 2],
  ["gemini-3-pro-image-preview", 2],
])("the list has a price of %s", (model, input) => {
  expect(priceOf(model, {})?.input).toBe(input);
});

test.each([
  "gpt-5-image",
  "openai/gpt-5.4-image-2",
  "gpt-5.9",
  "gpt-5.3-pro",
  "gpt-5-realtime",
  "o4-mini-deep-research",
  "claude-opus-4-6-fast",
  "gemini-2.5-flash-preview-tts",
  "gemini-2.5-flash-native-audio-dialog",
  "gemini-3.1-flash-lite-image",
  "models/gemini-3.8-flash-live",
])("the list has no price of %s, which costs otherwise than its namesakes, but an operator may", (model) => {
  expect(priceOf(model, {})).toBeNull();
  expect(priceOf(model, { "*": { input: 1, output: 2 } })).toEqual({ input: 1, output: 2 });
});
