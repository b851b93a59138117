/** A value of the body with its position. Null: the body says `null`. */
export interface Located<Value> {
  readonly value: Value | null;
  readonly from: number;
  readonly to: number;
}

/** An object into which a field can be inserted. */
export interface InsertionPoint {
  /** Offset in the body of the object's first byte after the brace. */
  readonly at: number;
  readonly isEmpty: boolean;
}

/** All that is known of a checked body, in addition to the bytes that are forwarded. */
export interface CheckedBody {
  readonly model: string | null;
  /** Limits of the answer's length, by each field that sets one. */
  readonly limits: readonly (Located<number> & { readonly name: string })[];
  /** Number of answers requested. */
  readonly choices: number;
  /** Maximum reasoning tokens, if the body sets one: not all servers count them as part of the answer. */
  readonly thinking: number;
  /** Whether the conversation is summarised, instead of an answer or in addition to it. */
  readonly compacts: "instead" | "beside" | null;
  readonly stream: boolean;
  readonly store: Located<boolean> | null;
  readonly includeUsage: Located<boolean> | null;
  readonly top: InsertionPoint;
  /** `stream_options`, if the body has it. */
  readonly streamOptions: (Located<never> & { readonly place: InsertionPoint | null }) | null;
  /** `generationConfig`, if the body has it. */
  readonly outputLimit: (Located<never> & { readonly place: InsertionPoint | null }) | null;
  /** Whether something is to be cached for an hour, which has another price. */
  readonly cachesForHour: boolean;
  /** Maximum tokens of its text, without images. */
  readonly textTokens: number;
  readonly images: number;
  /** Whether it contains a document, audio or video, whose tokens only the model's context limits. */
  readonly fillsContext: boolean;
  readonly hasSound: boolean;
  /** Length of the conversation, and whether tools are offered. */
  readonly turns: number;
  readonly hasTools: boolean;
}

/** Facts collected while a body is read. */
export interface BodyFacts {
  model: string | null;
  readonly limits: (Located<number> & { readonly name: string })[];
  choices: number;
  /** Number of prompts, each of which is answered. */
  prompts: number;
  thinking: number;
  compacts: CheckedBody["compacts"];
  stream: Located<boolean> | null;
  store: Located<boolean> | null;
  includeUsage: Located<boolean> | null;
  top: InsertionPoint;
  streamOptions: CheckedBody["streamOptions"];
  outputLimit: CheckedBody["outputLimit"];
  cachesForHour: boolean;
  turns: number;
  hasTools: boolean;
  images: number;
  fillsContext: boolean;
  hasSound: boolean;
  /** Weight of media in the body, and the tokens of text that they are or may be. */
  mediaWeight: number;
  mediaTextTokens: number;
}

/** Facts of a body of which nothing was read. */
export function noFacts(): BodyFacts {
  return {
    model: null,
    limits: [],
    choices: 1,
    prompts: 0,
    thinking: 0,
    compacts: null,
    stream: null,
    store: null,
    includeUsage: null,
    top: { at: 0, isEmpty: true },
    streamOptions: null,
    outputLimit: null,
    cachesForHour: false,
    turns: 0,
    hasTools: false,
    images: 0,
    fillsContext: false,
    hasSound: false,
    mediaWeight: 0,
    mediaTextTokens: 0,
  };
}

/** Facts of a complete body. @param weight of the whole document, in halves of a token */
export function conclude(facts: BodyFacts, weight: number): CheckedBody {
  const { stream, prompts, choices, mediaWeight, mediaTextTokens, ...found } = facts;
  return {
    ...found,
    stream: stream?.value === true,
    choices: choices * Math.max(1, prompts),
    textTokens: Math.ceil((weight - mediaWeight) / 2 + mediaTextTokens),
  };
}
