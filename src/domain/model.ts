import { z } from "zod";
import { fitsGlob } from "./glob.ts";

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

/** Characters of a model's name: no provider's is near to it, and a longer one fits no pattern. */
export const longestModelName = 200;

export const modelPatternSchema = z
  .string()
  .max(longestModelName)
  .regex(/^[^\s,]+$/u, "must be a model's name, with * for any characters");

/**
 * Whether a model's name fits one of the patterns, in which `*` stands for any characters; capitals do not count.
 * The name is an agent's: it takes time in proportion to it, and none if it is longer than `longestModelName`.
 */
export function fitsModel(patterns: readonly string[], model: string): boolean {
  if (model.length > longestModelName) return false;
  const name = model.toLowerCase();
  return patterns.some((pattern) => fitsGlob(pattern.toLowerCase(), name));
}
