import { z } from "zod";
import { matchesGlob } from "../fields/glob.ts";

/**
 * Addresses and keys of model providers: as configured, or, for a program in a sandbox, with the gateway's address and
 * token.
 */
export interface ModelProviders {
  readonly anthropic?: { readonly apiKey: string; readonly baseUrl?: string };
  readonly openai?: { readonly apiKey: string; readonly baseUrl?: string };
  readonly google?: { readonly apiKey: string; readonly baseUrl?: string };
  /** Any server that implements OpenAI's Chat Completions API. */
  readonly compatible?: { readonly baseUrl: string; readonly apiKey?: string; readonly model?: string };
}

/** Id of a model provider. */
export type ModelProviderId = keyof ModelProviders;
/** Ids of all model providers. */
export const modelProviderIds = ["anthropic", "openai", "google", "compatible"] as const;

/** Maximum characters of a model's name: far longer than any provider's. A longer name matches no pattern. */
export const longestModelName = 200;

/** A pattern of models' names, in which `*` stands for any characters. */
export const modelPatternSchema = z
  .string()
  .max(longestModelName)
  .regex(/^[^\s,]+$/u, "must be a model's name, with * for any characters");

/**
 * Whether a model's name matches one of the patterns, in which `*` stands for any characters; case does not count.
 * An agent chooses the name: the time is proportional to its length, and names longer than `longestModelName` match
 * none.
 */
export function matchesModel(patterns: readonly string[], model: string): boolean {
  if (model.length > longestModelName) return false;
  const name = model.toLowerCase();
  return patterns.some((pattern) => matchesGlob(pattern.toLowerCase(), name));
}
