import { matchesPattern } from "../refusal.ts";

/** A model's limits in tokens, as its provider publishes them. */
export interface ModelLimits {
  /** Maximum answer, reasoning included. */
  readonly answer: number;
  /** Maximum input. */
  readonly context: number;
  /** Maximum that an image counts as, of whatever size. */
  readonly image: number;
}

/** Defaults for unlisted models and fields: as of the largest models. An image of Qwen's counts up to 16,384 tokens. */
const others: ModelLimits = { answer: 128_000, context: 2_000_000, image: 20_000 };

/**
 * By the beginning of a model's name; the first match counts. From GPT-5.4 on an image in its original size is 10,000
 * patches, times up to 2.46 for small models (developers.openai.com/api/docs/guides/images-vision); Claude's are up to
 * 4,784 tokens (platform.claude.com/docs/en/build-with-claude/vision), and Gemini's up to 16 tiles of 258
 * (ai.google.dev/gemini-api/docs/tokens).
 */
const known: readonly (readonly [pattern: string, limits: Partial<ModelLimits>])[] = [
  ["claude-haiku-4-5*", { context: 200_000, image: 5_000 }],
  ["claude-opus-4-1*", { context: 200_000, image: 5_000 }],
  ["claude-opus-4-5*", { context: 200_000, image: 5_000 }],
  ["claude-*", { context: 1_000_000, image: 5_000 }],
  ["gpt-4.1*", { answer: 32_768, context: 1_047_576, image: 4_000 }],
  // Its images are billed as this many tokens, which need not fit into its context.
  ["gpt-4o-mini*", { answer: 16_384, context: 128_000, image: 50_000 }],
  ["gpt-4o*", { answer: 16_384, context: 128_000, image: 2_000 }],
  ["gpt-5", { context: 400_000, image: 5_000 }],
  ["gpt-5-*", { context: 400_000, image: 5_000 }],
  ["gpt-5.1*", { context: 400_000, image: 5_000 }],
  ["gpt-5.2*", { context: 400_000, image: 5_000 }],
  ["gpt-5.3*", { context: 400_000, image: 5_000 }],
  ["gpt-*", { context: 1_050_000, image: 25_000 }],
  ["o3*", { answer: 100_000, context: 200_000, image: 2_000 }],
  ["o4-mini*", { answer: 100_000, context: 200_000, image: 4_000 }],
  ["gemini-*", { answer: 65_536, context: 1_048_576, image: 5_000 }],
];

/** Limits of a model. @param model its name, with or without a prefix such as `openai/`; case does not count */
export function limitsOf(model: string): ModelLimits {
  const name = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  return { ...others, ...known.find(([pattern]) => matchesPattern(pattern, name))?.[1] };
}
