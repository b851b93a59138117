import { z } from "zod";

/** Where models are asked: as the configuration found it, or as a sandbox sees it, with the gateway's address and token. */
export interface ModelProviders {
  readonly anthropic?: { readonly apiKey: string; readonly baseUrl?: string };
  readonly openai?: { readonly apiKey: string; readonly baseUrl?: string };
  readonly google?: { readonly apiKey: string; readonly baseUrl?: string };
  /** Anything that speaks OpenAI's Chat Completions. */
  readonly compatible?: { readonly baseUrl: string; readonly apiKey?: string; readonly model?: string };
}

export type ModelProviderId = keyof ModelProviders;
export const modelProviderIds = ["anthropic", "openai", "google", "compatible"] as const;

export const modelPatternSchema = z
  .string()
  .max(200)
  .regex(/^[^\s,]+$/u, "must be a model's name, with * for any characters");

/** Whether a model's name fits one of the patterns, in which `*` stands for any characters. */
export function fitsModel(patterns: readonly string[], model: string): boolean {
  return patterns.some((pattern) => {
    const parts = pattern
      .toLowerCase()
      .split("*")
      .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/gu, "\\$&"));
    return new RegExp(`^${parts.join(".*")}$`, "su").test(model.toLowerCase());
  });
}
