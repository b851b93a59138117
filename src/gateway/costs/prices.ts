import { matchesModel } from "../../domain/agents/model.ts";
import type { MostUsage } from "./estimate.ts";
import type { ModelUsage } from "./usage.ts";

/** Prices of a model, in US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input read from a cache; default: as input. */
  readonly cacheRead?: number | undefined;
  /** Input written to a cache; default: as input. */
  readonly cacheWrite?: number | undefined;
  /** Input written to a cache for an hour; default: as `cacheWrite`. */
  readonly cacheHour?: number | undefined;
  /** Audio input; default: as other input. Cached audio costs more by the same factor. */
  readonly sound?: number | undefined;
  /** For requests with more input tokens than `above`: factors of the input's and the output's price. */
  readonly long?: { readonly above: number; readonly input: number; readonly output: number };
}

/** Prices by patterns of models' names. */
export type Prices = Readonly<Record<string, Price>>;

const anthropic = (input: number, output: number, cacheRead = input / 10): Price => ({
  input,
  output,
  cacheRead,
  cacheWrite: input * 1.25,
  cacheHour: input * 2,
});
const cached = (input: number, output: number, cacheRead = input / 10): Price => ({ input, output, cacheRead });

const above = (tokens: number, price: Price): Price => ({ ...price, long: { above: tokens, input: 2, output: 1.5 } });

/**
 * List prices of the providers' own APIs, as of November 2026, without discounts: an estimate, which configuration can
 * override. The longest matching pattern counts.
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
  "claude-sonnet-4*": above(200_000, anthropic(3, 15)),
  "claude-sonnet-5*": anthropic(2, 10),
  "claude-haiku-4-5*": anthropic(1, 5),
  "gpt-5": cached(1.25, 10),
  "gpt-5-20*": cached(1.25, 10),
  "gpt-5-chat*": cached(1.25, 10),
  "gpt-5-codex*": cached(1.25, 10),
  "gpt-5-mini*": cached(0.25, 2),
  "gpt-5-nano*": cached(0.05, 0.4),
  "gpt-5-pro*": cached(15, 120, 15),
  "gpt-5.2-pro*": cached(21, 168, 21),
  "gpt-5.4-pro*": above(272_000, cached(30, 180, 30)),
  "gpt-5.5-pro*": above(272_000, cached(30, 180, 30)),
  "o3-pro*": cached(20, 80, 20),
  "o3-deep-research*": cached(10, 40, 2.5),
  "gpt-5.1-codex-mini*": cached(0.25, 2),
  "gpt-5.1*": cached(1.25, 10),
  "gpt-5.2*": cached(1.75, 14),
  "gpt-5.3*": cached(1.75, 14),
  "gpt-5.4*": above(272_000, cached(2.5, 15)),
  "gpt-5.4-mini*": cached(0.75, 4.5),
  "gpt-5.4-nano*": cached(0.2, 1.25),
  "gpt-5.5*": above(272_000, cached(5, 30)),
  "gpt-5.6-sol*": anthropic(5, 30),
  "gpt-5.6-sol-pro*": anthropic(5, 30),
  "gpt-5.6-terra*": anthropic(2.5, 15),
  "gpt-5.6-terra-pro*": anthropic(2.5, 15),
  "gpt-5.6-luna*": anthropic(1, 6),
  "gpt-5.6-luna-pro*": anthropic(1, 6),
  "gpt-6-sol*": anthropic(2, 10),
  "gpt-6-luna*": anthropic(0.1, 0.5),
  "gpt-4.1*": cached(2, 8, 0.5),
  "gpt-4.1-mini*": cached(0.4, 1.6, 0.1),
  "o3*": cached(2, 8, 0.5),
  "o4-mini*": cached(1.1, 4.4, 0.275),
  "gemini-2.5-pro*": above(200_000, cached(1.25, 10)),
  "gemini-2.5-flash*": { ...cached(0.3, 2.5), sound: 1 },
  "gemini-2.5-flash-lite*": { ...cached(0.1, 0.4), sound: 0.3 },
  "gemini-3-pro*": above(200_000, cached(2, 12)),
  "gemini-2.5-flash-image*": cached(0.3, 30),
  "gemini-3-pro-image*": cached(2, 120),
  "gemini-3.1-flash-image*": cached(0.5, 60),
  "gemini-3-flash*": { ...cached(0.5, 3), sound: 1 },
  "gemini-3.1-pro*": above(200_000, cached(2, 12)),
  "gemini-3.1-flash-lite*": { ...cached(0.25, 1.5), sound: 0.5 },
  "gemini-3.5-flash*": cached(1.5, 9),
  "gemini-3.5-flash-lite*": cached(0.3, 2.5),
  "gemini-3.7-flash*": cached(0.75, 3.75),
  "gemini-3.8-flash*": cached(0.75, 3.75),
};

/**
 * Words in names of models that cost otherwise than models of the same family, often many times as much: `…-pro`,
 * `…-image`, `…-fast`.
 */
const kindsApart = /(?<![a-z])(?:pro|image|audio|realtime|live|tts|video|research|search|fast|ultrafast)(?![a-z])/giu;

/**
 * The price of a model: from the operator's own prices, else by the longest matching pattern. Null if none matches, and
 * for special kinds of models that the list does not name.
 */
export function priceOf(model: string, own: Prices): Price | null {
  const ofOperator = longestFit(Object.keys(own), model);
  if (ofOperator !== undefined) return own[ofOperator] ?? null;
  const listed = longestFit(Object.keys(listPrices), model);
  if (listed === undefined || kindsOf(bare(model)) !== kindsOf(listed)) return null;
  return listPrices[listed] ?? null;
}

function kindsOf(name: string): string {
  const kinds = [...name.toLowerCase().matchAll(kindsApart)].map(([kind]) => kind);
  return [...new Set(kinds)].toSorted().join();
}

/** The price of the first name that has one: a relay may answer with another model name. */
export function priceOfAny(names: readonly (string | null)[], own: Prices): Price | null {
  for (const name of names) {
    const price = name === null ? null : priceOf(name, own);
    if (price !== null) return price;
  }
  return null;
}

/**
 * Label of a model in metrics. Agents may ask for any name, and each label creates a time series for ever: so the label
 * is the matching price pattern without asterisks, or a name in the configuration, else `other`; `none` if the request
 * named no model.
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
    .filter((candidate) => matchesModel([candidate], bare(model)) || matchesModel([candidate], model))
    .toSorted((a, b) => b.length - a.length)[0];
}

/** Removes the prefix of names such as `models/gemini-…` and `anthropic/claude-…`. */
function bare(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1);
}

/** Cost of a request in US dollars. */
export function costOf(usage: ModelUsage, price: Price): number {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, cacheHourTokens = 0 } = usage;
  const { input, output, cacheRead = input, cacheWrite = input, cacheHour = cacheWrite, long } = price;
  const isLong = long !== undefined && inputTokens + cacheReadTokens + cacheWriteTokens > long.above;
  const hour = Math.min(cacheHourTokens, cacheWriteTokens);
  const ofInput =
    inputTokens * input + cacheReadTokens * cacheRead + (cacheWriteTokens - hour) * cacheWrite + hour * cacheHour;
  const inputPrice = ofInput * (usage.hasSound === true ? soundFactor(price) : 1);
  return (inputPrice * (isLong ? long.input : 1) + outputTokens * output * (isLong ? long.output : 1)) / 1_000_000;
}

/**
 * Price of audio input relative to text. Not all providers report how much of the input is audio, so it counts for the
 * whole input.
 */
function soundFactor({ input, sound = input }: Price): number {
  return input === 0 ? 1 : Math.max(1, sound / input);
}

/** Maximum cost of a request in US dollars. @returns `input`, and `token` for each token of an answer */
export function mostCostOf(
  { inputTokens, cachesForHour, hasSound }: Pick<MostUsage, "inputTokens" | "cachesForHour" | "hasSound">,
  price: Price,
): { readonly input: number; readonly token: number } {
  const { input, output, cacheWrite = input, cacheHour = cacheWrite, long } = price;
  const isLong = long !== undefined && inputTokens > long.above;
  const dearest = Math.max(input, cacheWrite, cachesForHour ? cacheHour : 0) * (isLong ? long.input : 1);
  const inputPrice = dearest * (hasSound ? soundFactor(price) : 1);
  return { input: (inputTokens * inputPrice) / 1_000_000, token: (output * (isLong ? long.output : 1)) / 1_000_000 };
}
