import type { Understood } from "../bodies/facts.ts";
import type { Operation } from "../bodies/operations.ts";
import { limitsOf } from "./model-limits.ts";
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
  readonly hasSound: boolean;
}

/** What a conversation is told around its messages, and of tools: some 700 for each of those that Anthropic describes itself. */
const unseenTokens = 3_000;

/** @param model as the request names it */
export function mostUsage(operation: Operation, body: Understood, model: string): MostUsage {
  const limits = limitsOf(model);
  const told = body.textTokens + body.images * limits.image + unseenTokens;
  const read = body.fillsContext ? Math.max(told, limits.context) : told;
  return {
    // To summarise it the conversation is read once more.
    inputTokens: body.compacts === "beside" ? 2 * read : read,
    ...mostOutput(operation, body, limits.answer),
    answers: body.choices,
    cachesForHour: body.cachesForHour,
    hasSound: body.hasSound,
  };
}

/** @param longest of the model, in tokens */
function mostOutput(
  { limit, isSilent, hasOneLimit }: Operation,
  { limits, compacts, thinking }: Understood,
  longest: number,
): Pick<MostUsage, "outputTokens" | "isLimited"> {
  if (isSilent === true) return { outputTokens: 0, isLimited: true };
  // What is summarised is as long as it comes, whatever the body says.
  if (limit === null || compacts === "instead") return { outputTokens: longest, isLimited: true };
  const isHonoured = hasOneLimit !== true || limits.some(({ name, value }) => name === limit && value !== null);
  const said = limits.flatMap(({ value }) => value ?? []);
  const isLimited = said.length > 0 && isHonoured;
  const answer = isLimited ? Math.max(...said) + (hasOneLimit === true ? thinking : 0) : longest;
  return compacts === null ? { outputTokens: answer, isLimited } : { outputTokens: answer + longest, isLimited: true };
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
      hasSound: most.hasSound,
    };
  }
  const { isWhole, ...usage } = told;
  return {
    ...usage,
    hasSound: most.hasSound,
    // Not all tell how long what they wrote to their cache stays there.
    ...(most.cachesForHour && { cacheHourTokens: usage.cacheHourTokens ?? usage.cacheWriteTokens }),
    outputTokens: isWhole ? usage.outputTokens : Math.max(output, usage.outputTokens),
  };
}
