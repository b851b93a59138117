import type { Understood } from "./bodies/check.ts";
import type { Operation } from "./bodies/operations.ts";
import { fits } from "./refusal.ts";
import type { ModelUsage, ToldUsage } from "./usage.ts";

/** What a request can use at most. */
export interface MostUsage {
  readonly inputTokens: number;
  /** Of one answer; how many there are. */
  readonly outputTokens: number;
  readonly answers: number;
  /** Its body says how long an answer can be, or that can't be said. */
  readonly isLimited: boolean;
  readonly cachesForHour: boolean;
}

/** The longest answers of models, reasoning included, by the beginning of their names. */
const longestAnswers: readonly (readonly [pattern: string, tokens: number])[] = [
  ["gpt-4.1*", 32_768],
  ["gpt-4o*", 16_384],
  ["o3*", 100_000],
  ["o4-mini*", 100_000],
  ["gemini-*", 65_536],
];
/** Of every other model: what the largest of them write. */
const longestAnswer = 128_000;
/** What a conversation is told around its messages, and of tools. */
const unseenTokens = 1_000;

export function mostUsage(operation: Operation, body: Understood, model: string): MostUsage {
  const name = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  const longest = longestAnswers.find(([pattern]) => fits(pattern, name))?.[1] ?? longestAnswer;
  const said = body.maxOutput?.value ?? null;
  return {
    inputTokens: body.inputTokens + unseenTokens,
    outputTokens: operation.isSilent === true ? 0 : (said ?? longest),
    answers: body.choices,
    isLimited: said !== null || operation.limit === null,
    cachesForHour: body.cachesForHour,
  };
}

/**
 * What is counted of a request. What its provider did not tell counts as the most that it can be: a budget could be passed by
 * else, by hanging up, by hiding what was thought, or by a server that tells nothing.
 * @param told what the answer told, if it came
 * @param most `outputTokens` as it was limited
 */
export function countedUsage(told: ToldUsage | null, most: MostUsage): ModelUsage {
  const output = most.outputTokens * most.answers;
  if (told === null) {
    return {
      model: null,
      inputTokens: most.inputTokens,
      outputTokens: output,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      reasoningTokens: 0,
    };
  }
  const { isWhole, ...usage } = told;
  return isWhole ? usage : { ...usage, outputTokens: Math.max(output, usage.outputTokens) };
}
