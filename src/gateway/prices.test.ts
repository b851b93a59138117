import { expect, test } from "vitest";
import { modelLabel } from "./prices.ts";

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
