import { fitsModel } from "../domain/model.ts";
import type { ModelUsage } from "./usage.ts";

/** US dollars for a million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Of tokens read from a cache; without it as input. */
  readonly cacheRead?: number | undefined;
  /** Of tokens written to one; without it as input. */
  readonly cacheWrite?: number | undefined;
}

/** By the pattern of a model's name. */
export type Prices = Readonly<Record<string, Price>>;

const anthropic = (input: number, output: number, cacheRead = input / 10): Price => ({
  input,
  output,
  cacheRead,
  cacheWrite: input * 1.25,
});
const cached = (input: number, output: number, cacheRead = input / 10): Price => ({ input, output, cacheRead });

/**
 * List prices of the makers' own APIs, as of November 2026, without discounts and without surcharges for very long input:
 * an estimate, which configuration can override. Longer patterns win over shorter.
 */
export const listPrices: Prices = {
  "claude-fable-5*": anthropic(10, 50),
  "claude-fable-5-1*": anthropic(10, 50, 0.25),
  "claude-opus-4-1*": anthropic(15, 75),
  "claude-opus-4-5*": anthropic(5, 25),
  "claude-opus-4-6*": anthropic(5, 25),
  "claude-opus-4-7*": anthropic(5, 25),
  "claude-opus-4-8*": anthropic(5, 25),
  "claude-opus-5*": anthropic(5, 25),
  "claude-opus-5-5*": anthropic(4, 20, 0.2),
  "claude-sonnet-4*": anthropic(3, 15),
  "claude-sonnet-5*": anthropic(2, 10),
  "claude-haiku-4-5*": anthropic(1, 5),
  "gpt-5*": cached(1.25, 10),
  "gpt-5-mini*": cached(0.25, 2),
  "gpt-5-nano*": cached(0.05, 0.4),
  "gpt-5-pro*": cached(15, 120, 15),
  "gpt-5.1-codex-mini*": cached(0.25, 2),
  "gpt-5.1*": cached(1.25, 10),
  "gpt-5.2*": cached(1.75, 14),
  "gpt-5.3*": cached(1.75, 14),
  "gpt-5.4*": cached(2.5, 15),
  "gpt-5.4-mini*": cached(0.75, 4.5),
  "gpt-5.4-nano*": cached(0.2, 1.25),
  "gpt-5.5*": cached(5, 30),
  "gpt-5.6-sol*": anthropic(5, 30),
  "gpt-5.6-terra*": anthropic(2.5, 15),
  "gpt-5.6-luna*": anthropic(1, 6),
  "gpt-6-sol*": anthropic(2, 10),
  "gpt-6-luna*": anthropic(0.1, 0.5),
  "gpt-4.1*": cached(2, 8, 0.5),
  "gpt-4.1-mini*": cached(0.4, 1.6, 0.1),
  "o3*": cached(2, 8, 0.5),
  "o4-mini*": cached(1.1, 4.4, 0.275),
  "gemini-2.5-pro*": cached(1.25, 10),
  "gemini-2.5-flash*": cached(0.3, 2.5),
  "gemini-2.5-flash-lite*": cached(0.1, 0.4),
  "gemini-3-pro*": cached(2, 12),
  "gemini-3-flash*": cached(0.5, 3),
  "gemini-3.1-pro*": cached(2, 12),
  "gemini-3.1-flash-lite*": cached(0.25, 1.5),
  "gemini-3.5-flash*": cached(1.5, 9),
  "gemini-3.5-flash-lite*": cached(0.3, 2.5),
  "gemini-3.7-flash*": cached(0.75, 3.75),
  "gemini-3.8-flash*": cached(0.75, 3.75),
};

/** The price of a model; the operator's own first, then the longest pattern. Null where none fits. */
export function priceOf(model: string, own: Prices): Price | null {
  for (const prices of [own, listPrices]) {
    const pattern = longestFit(Object.keys(prices), model);
    if (pattern !== undefined) return prices[pattern] ?? null;
  }
  return null;
}

/** Of the first of a model's names that has one: a server that stands before others may answer by a name of theirs. */
export function priceOfAny(names: readonly (string | null)[], own: Prices): Price | null {
  for (const name of names) {
    const price = name === null ? null : priceOf(name, own);
    if (price !== null) return price;
  }
  return null;
}

/**
 * What a metric calls a model: agents may ask for any name, and each would be a series for ever. So it is the pattern of
 * its price without its asterisks, or a name that the operator wrote down, else `other`; `none` where no model was named.
 * @param named patterns and names of the operator's configuration
 */
export function modelLabel(model: string | null, own: Prices, named: readonly string[]): string {
  if (model === null) return "none";
  const written = named.filter((name) => !name.includes("*"));
  for (const patterns of [written, Object.keys(own), Object.keys(listPrices)]) {
    const name = longestFit(patterns, model)?.replaceAll("*", "");
    if (name !== undefined && name !== "") return name;
  }
  return "other";
}

function longestFit(patterns: readonly string[], model: string): string | undefined {
  return patterns
    .filter((candidate) => fitsModel([candidate], bare(model)) || fitsModel([candidate], model))
    .toSorted((a, b) => b.length - a.length)[0];
}

/** `models/gemini-…` and `anthropic/claude-…` name the same as without what stands before. */
function bare(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1);
}

/** US dollars. */
export function costOf(usage: ModelUsage, price: Price): number {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const { input, output, cacheRead = input, cacheWrite = input } = price;
  return (
    (inputTokens * input + outputTokens * output + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite) /
    1_000_000
  );
}
