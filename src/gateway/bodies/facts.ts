/** A value of the body that is needed, and where it stands. Null: the body says `null`. */
export interface Said<Value> {
  readonly value: Value | null;
  readonly from: number;
  readonly to: number;
}

/** An object into which a field can be put. */
export interface Place {
  /** Bytes of the body up to its inside. */
  readonly at: number;
  readonly isEmpty: boolean;
}

/** All that is known of a body after it was read: it is kept nowhere else than as the bytes that are forwarded. */
export interface Understood {
  readonly model: string | null;
  /** How long its answer may be, by each name by which the body says it. */
  readonly limits: readonly (Said<number> & { readonly name: string })[];
  /** Answers that are made at once. */
  readonly choices: number;
  /** How much may be thought for it, in tokens, as far as it says so: not all servers count that as a part of the answer. */
  readonly thinking: number;
  /** It has the conversation summarised, instead of an answer or beside it. */
  readonly compacts: "instead" | "beside" | null;
  readonly stream: boolean;
  readonly store: Said<boolean> | null;
  readonly includeUsage: Said<boolean> | null;
  readonly top: Place;
  /** `stream_options`, if the body has it. */
  readonly streamOptions: (Said<never> & { readonly place: Place | null }) | null;
  /** `generationConfig`, likewise. */
  readonly outputLimit: (Said<never> & { readonly place: Place | null }) | null;
  /** Asks for something to be kept in a cache for an hour, which has a price of its own. */
  readonly cachesForHour: boolean;
  /** Tokens that its text can be at most, without images. */
  readonly textTokens: number;
  readonly images: number;
  /** It holds a document, sound or video, of which a model can read as much as fits into it. */
  readonly fillsContext: boolean;
  readonly hasSound: boolean;
  /** How far its conversation is, and whether tools are offered. */
  readonly turns: number;
  readonly hasTools: boolean;
}

/** What was found so far. */
export interface Facts {
  model: string | null;
  readonly limits: (Said<number> & { readonly name: string })[];
  choices: number;
  /** Of a request that has several answered. */
  prompts: number;
  thinking: number;
  compacts: Understood["compacts"];
  stream: Said<boolean> | null;
  store: Said<boolean> | null;
  includeUsage: Said<boolean> | null;
  top: Place;
  streamOptions: Understood["streamOptions"];
  outputLimit: Understood["outputLimit"];
  cachesForHour: boolean;
  turns: number;
  hasTools: boolean;
  images: number;
  fillsContext: boolean;
  hasSound: boolean;
  /** Of what holds media, as of the whole document; and the text that they are or may be. */
  mediaWeight: number;
  mediaTextTokens: number;
}

export function noFacts(): Facts {
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

/** @param weight of the whole document, in halves of a token */
export function conclude(facts: Facts, weight: number): Understood {
  const { stream, prompts, choices, mediaWeight, mediaTextTokens, ...found } = facts;
  return {
    ...found,
    stream: stream?.value === true,
    choices: choices * Math.max(1, prompts),
    textTokens: Math.ceil((weight - mediaWeight) / 2 + mediaTextTokens),
  };
}
