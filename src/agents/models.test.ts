import { describe, expect, it } from "vitest";
import { defaultModelOf, chooseModel, sdkBaseUrl } from "./models.ts";

const anthropic = { apiKey: "a" };
const openai = { apiKey: "o" };
const compatible = { baseUrl: "http://127.0.0.1:11434/v1", model: "qwen3" };

describe("who is asked for a model", () => {
  it.each([
    ["claude-opus-5", { anthropic, openai, compatible }, "anthropic", "claude-opus-5"],
    ["gpt-5.6", { anthropic, openai }, "openai", "gpt-5.6"],
    ["anthropic/claude-opus-5", { anthropic, compatible }, "anthropic", "claude-opus-5"],
    ["qwen3", { anthropic, compatible }, "compatible", "qwen3"],
    ["meta/llama-4", { compatible }, "compatible", "meta/llama-4"],
    // A family whose own provider has no key is asked for if there is one that may know it.
    ["claude-opus-5", { compatible }, "compatible", "claude-opus-5"],
  ] as const)("%s", (name, models, provider, model) => {
    expect(chooseModel(models, name)).toMatchObject({ provider, model });
  });

  it("is none if nothing is configured", () => {
    expect(chooseModel({}, "gpt-5.6")).toBeNull();
    expect(defaultModelOf({})).toBeNull();
  });
});

it("asks an endpoint that the operator named a model for before any key", () => {
  expect(defaultModelOf({ anthropic, compatible })).toBe("qwen3");
});

it.each([
  [{ provider: "anthropic", baseUrl: "https://proxy.example/" }, "https://proxy.example/v1"],
  [{ provider: "anthropic", baseUrl: "https://proxy.example/v1" }, "https://proxy.example/v1"],
  [{ provider: "google", baseUrl: "https://proxy.example" }, "https://proxy.example/v1beta"],
  [{ provider: "openai", baseUrl: "https://proxy.example/v1/" }, "https://proxy.example/v1"],
  [{ provider: "openai", baseUrl: undefined }, undefined],
] as const)("the base address %j is %s to the AI SDK", (route, url) => {
  expect(sdkBaseUrl(route)).toBe(url);
});
