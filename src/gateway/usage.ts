import { z } from "zod";

/** What one request used, as the provider counts it. Input does not hold what came from a cache; output holds reasoning. */
export interface ModelUsage {
  readonly model: string | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
}

const count = z.number().int().min(0).nullish();
const details = z.object({ cached_tokens: count, reasoning_tokens: count }).nullish();

/** The fields in which providers tell of usage, whole or in the pieces of a stream. Each is the newest count, not a sum. */
const usageSchema = z.object({
  // Anthropic Messages, and OpenAI Responses
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  input_tokens_details: details,
  output_tokens_details: details,
  // OpenAI Chat Completions
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: details,
  completion_tokens_details: details,
});
const geminiSchema = z.object({
  promptTokenCount: count,
  candidatesTokenCount: count,
  cachedContentTokenCount: count,
  thoughtsTokenCount: count,
});
const holderSchema = z.object({
  model: z.string().nullish(),
  modelVersion: z.string().nullish(),
  usage: usageSchema.nullish().catch(null),
  usageMetadata: geminiSchema.nullish().catch(null),
});
/** Some pieces of a stream hold the answer so far inside. */
const pieceSchema = holderSchema.extend({
  message: holderSchema.nullish().catch(null),
  response: holderSchema.nullish().catch(null),
});

/** Longest line that is looked at: an answer's last piece may hold all of it. */
const longestLine = 16 * 1024 * 1024;

/** Reads along as an answer passes: a stream of events, or one JSON document. */
export function createUsageReader(): { read(chunk: Buffer): void; end(): ModelUsage | null } {
  const decoder = new TextDecoder();
  let rest = "";
  let seen: ModelUsage | null = null;

  function take(line: string): void {
    const json = line.startsWith("data:") ? line.slice(5) : line;
    // Most pieces are words of the answer.
    if (!json.includes("sage")) return;
    try {
      const document: unknown = JSON.parse(json);
      // Gemini's stream is a list, where it was not asked for events.
      for (const one of Array.isArray(document) ? (document as unknown[]) : [document]) takePiece(one);
    } catch {
      // Not a document by itself: a part of one that is written over several lines is read at the end.
    }
  }

  function takePiece(document: unknown): void {
    const piece = pieceSchema.safeParse(document);
    if (!piece.success) return;
    for (const holder of [piece.data, piece.data.message, piece.data.response]) {
      if (holder != null) seen = newest(seen, holder);
    }
  }

  let whole: string | null = "";
  return {
    read(chunk) {
      const text = decoder.decode(chunk, { stream: true });
      if (whole !== null) whole = whole.length + text.length > longestLine ? null : whole + text;
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > longestLine) rest = "";
      for (const line of lines) take(line.trim());
    },
    end() {
      take(rest.trim());
      if (seen === null && whole !== null) take(whole.trim());
      return seen;
    },
  };
}

function newest(before: ModelUsage | null, holder: z.infer<typeof holderSchema>): ModelUsage | null {
  const { usage, usageMetadata: gemini } = holder;
  const model = holder.model ?? holder.modelVersion ?? before?.model ?? null;
  if (usage == null && gemini == null) return before === null ? null : { ...before, model };
  const cached =
    usage?.input_tokens_details?.cached_tokens ??
    usage?.prompt_tokens_details?.cached_tokens ??
    gemini?.cachedContentTokenCount;
  const all = usage?.input_tokens ?? usage?.prompt_tokens ?? gemini?.promptTokenCount;
  return {
    model,
    // Anthropic counts what was cached beside the input, the others in it.
    inputTokens: all == null ? (before?.inputTokens ?? 0) : Math.max(0, all - (cached ?? 0)),
    outputTokens: usage?.output_tokens ?? usage?.completion_tokens ?? geminiOutput(gemini) ?? before?.outputTokens ?? 0,
    cacheReadTokens: usage?.cache_read_input_tokens ?? cached ?? before?.cacheReadTokens ?? 0,
    cacheWriteTokens: usage?.cache_creation_input_tokens ?? before?.cacheWriteTokens ?? 0,
    reasoningTokens:
      usage?.output_tokens_details?.reasoning_tokens ??
      usage?.completion_tokens_details?.reasoning_tokens ??
      gemini?.thoughtsTokenCount ??
      before?.reasoningTokens ??
      0,
  };
}

/** Gemini counts what it thought beside its answer, the others in it. */
function geminiOutput(gemini: z.infer<typeof geminiSchema> | null | undefined): number | undefined {
  if (gemini?.candidatesTokenCount == null && gemini?.thoughtsTokenCount == null) return undefined;
  return (gemini.candidatesTokenCount ?? 0) + (gemini.thoughtsTokenCount ?? 0);
}
