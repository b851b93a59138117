import type { CheckedBody } from "../bodies/facts.ts";
import type { ModelOperation } from "../bodies/operations.ts";
import { limitsOf } from "./model-limits.ts";
import type { ModelUsage, ReportedUsage } from "./usage.ts";

/** Maximum that a request can use. */
export interface MostUsage {
  readonly inputTokens: number;
  /** Of one answer; `choices` is the number of answers. */
  readonly outputTokens: number;
  readonly answers: number;
  /** Whether the body limits the answer's length, or it can't be limited. */
  readonly isLimited: boolean;
  readonly cachesForHour: boolean;
  readonly hasSound: boolean;
}

/** Tokens that the provider adds around messages and tools: some 700 for each of Anthropic's own tools. */
const unseenTokens = 3_000;

/** The maximum that a request can use. @param model as the request names it */
export function mostUsage(operation: ModelOperation, body: CheckedBody, model: string): MostUsage {
  const limits = limitsOf(model);
  const reported = body.textTokens + body.images * limits.image + unseenTokens;
  const read = body.fillsContext ? Math.max(reported, limits.context) : reported;
  return {
    // Compaction reads the conversation a second time.
    inputTokens: body.compacts === "beside" ? 2 * read : read,
    ...mostOutput(operation, body, limits.answer),
    answers: body.choices,
    cachesForHour: body.cachesForHour,
    hasSound: body.hasSound,
  };
}

/** @param longest the model's maximum answer, in tokens */
function mostOutput(
  { limit, isSilent, hasOneLimit }: ModelOperation,
  { limits, compacts, thinking }: CheckedBody,
  longest: number,
): Pick<MostUsage, "outputTokens" | "isLimited"> {
  if (isSilent === true) return { outputTokens: 0, isLimited: true };
  // A summary's length is not limited by the body.
  if (limit === null || compacts === "instead") return { outputTokens: longest, isLimited: true };
  const isHonoured = hasOneLimit !== true || limits.some(({ name, value }) => name === limit && value !== null);
  const requestedLimits = limits.flatMap(({ value }) => value ?? []);
  const isLimited = requestedLimits.length > 0 && isHonoured;
  const answer = isLimited ? Math.max(...requestedLimits) + (hasOneLimit === true ? thinking : 0) : longest;
  return compacts === null ? { outputTokens: answer, isLimited } : { outputTokens: answer + longest, isLimited: true };
}

/** @param outputLimit maximum tokens of one answer that the budget covers; null: as many as were requested */
export function limitedTo(most: MostUsage, outputLimit: number | null): MostUsage {
  return { ...most, outputTokens: outputLimit ?? most.outputTokens };
}

/**
 * The usage that is billed for a request. What the provider did not report counts at its maximum: otherwise a client
 * could exceed a budget by hanging up or hiding reasoning, or a server by reporting nothing.
 * @param reported what the answer reported, if anything
 * @param most maximum usage, with `outputTokens` as it was limited
 */
export function countedUsage(reported: ReportedUsage | null, most: MostUsage): ModelUsage {
  const output = most.outputTokens * most.answers;
  if (reported === null) {
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
  const { isWhole, ...usage } = reported;
  return {
    ...usage,
    hasSound: most.hasSound,
    // Not all providers report how long cached tokens are kept.
    ...(most.cachesForHour && { cacheHourTokens: usage.cacheHourTokens ?? usage.cacheWriteTokens }),
    outputTokens: isWhole ? usage.outputTokens : Math.max(output, usage.outputTokens),
  };
}
