import type { ModelProviderId } from "../../domain/agents/model.ts";
import { anthropicMessages } from "./anthropic.ts";
import { chatCompletions, completions, embeddings } from "./chat-completions.ts";
import { geminiContent, geminiEmbedding, geminiEmbeddings, geminiTokens } from "./gemini.ts";
import { responses } from "./responses.ts";
import type { Shape } from "./shape.ts";

/** An operation of a provider's API, and what the gateway enforces before it forwards a request. */
export interface ModelOperation {
  readonly shape: Shape;
  /**
   * Field that limits the answer's length, added if the body has none. Null if the answer is not text, or can't be
   * limited.
   */
  readonly limit: "max_tokens" | "max_output_tokens" | "max_completion_tokens" | "maxOutputTokens" | null;
  /** No other name of that field is known to work: servers may ignore them. */
  readonly hasOneLimit?: boolean;
  /** The provider stores the answer unless the body says `store: false`. */
  readonly storesByDefault?: boolean;
  /** Streams report their usage only on request. */
  readonly hidesUsage?: boolean;
  /** Costs nothing: it counts tokens. */
  readonly isFree?: boolean;
  /** Answers with numbers, and output costs nothing. */
  readonly isSilent?: boolean;
  /** Field names may be written in `camelCase` or `snake_case` (Protocol Buffers' JSON). */
  readonly hasTwoSpellings?: boolean;
}

const gemini = { hasTwoSpellings: true } as const;

/** All operations that the gateway forwards. */
export const operations = {
  messages: { shape: anthropicMessages, limit: "max_tokens" },
  messageTokens: { shape: anthropicMessages, limit: null, isFree: true },
  responses: { shape: responses, limit: "max_output_tokens", storesByDefault: true },
  // Its answer is short, and can't be limited.
  compaction: { shape: responses, limit: null },
  chat: { shape: chatCompletions, limit: "max_completion_tokens", hidesUsage: true },
  chatOfServer: { shape: chatCompletions, limit: "max_tokens", hasOneLimit: true, hidesUsage: true },
  completions: { shape: completions, limit: "max_tokens", hidesUsage: true },
  embeddings: { shape: embeddings, limit: null, isSilent: true },
  geminiContent: { shape: geminiContent, limit: "maxOutputTokens", ...gemini },
  geminiTokens: { shape: geminiTokens, limit: null, isFree: true, ...gemini },
  geminiEmbedding: { shape: geminiEmbedding, limit: null, isSilent: true, ...gemini },
  geminiEmbeddings: { shape: geminiEmbeddings, limit: null, isSilent: true, ...gemini },
} as const satisfies Record<string, ModelOperation>;

/** Name of an operation. */
export type OperationName = keyof typeof operations;

/** A Gemini path with the model's name, which begins with a letter or digit. */
const geminiModel = String.raw`\/v1(?:beta|alpha)?\/models\/([A-Za-z0-9][\w.-]*)`;
const geminiOperation = (verb: string): RegExp => new RegExp(`^${geminiModel}:${verb}$`, "u");
const ofOpenAi = (chat: "chat" | "chatOfServer"): readonly (readonly [RegExp, OperationName])[] => [
  [/^\/v1\/responses$/u, "responses"],
  [/^\/v1\/responses\/compact$/u, "compaction"],
  [/^\/v1\/chat\/completions$/u, chat],
  [/^\/v1\/completions$/u, "completions"],
  [/^\/v1\/embeddings$/u, "embeddings"],
];

/** Paths of each provider to which a request may be sent, without the provider's prefix, with their operation. */
export const sendingPaths: Readonly<Record<ModelProviderId, readonly (readonly [RegExp, OperationName])[]>> = {
  anthropic: [
    [/^\/v1\/messages$/u, "messages"],
    [/^\/v1\/messages\/count_tokens$/u, "messageTokens"],
  ],
  openai: ofOpenAi("chat"),
  compatible: ofOpenAi("chatOfServer"),
  google: [
    [geminiOperation("(?:generateContent|streamGenerateContent)"), "geminiContent"],
    [geminiOperation("countTokens"), "geminiTokens"],
    [geminiOperation("embedContent"), "geminiEmbedding"],
    [geminiOperation("batchEmbedContents"), "geminiEmbeddings"],
  ],
};
