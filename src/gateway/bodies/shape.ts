/**
 * What a request's body may hold, as data: a table for each operation, in the files beside this one. What no table names is
 * refused, so that nothing reaches a model's provider that the gateway did not understand.
 */
export interface Shape {
  /** Text that the model reads, or a setting that reaches nothing: whatever it holds, nothing inside is looked at. */
  readonly isData?: boolean;
  /** If it may be a string, number, `true` or `false`: what is asked of it. `null` says the same as nothing. */
  readonly scalar?: ScalarRule;
  /** If it may be a list: of what. A function, because what a tool gave back holds blocks, as a message does. */
  readonly each?: () => Shape;
  /** If it may be an object: its fields by name. */
  readonly fields?: Readonly<Record<string, Shape>>;
  /** Fields that are not named pass if the object's own `type` is one that the operator allowed by its name. */
  readonly opensByType?: boolean;
  /** What its own fields must say, by its `type`: `""` if it says none. */
  readonly needs?: Readonly<Record<string, Needs>>;
  /** A list whose elements are counted, or are of interest if there are any. */
  readonly counts?: "turns" | "tools" | "prompts";
  /** What an object holds whose own fields don't say of what kind it is. */
  readonly holds?: "sound";
  /** An object into which a field may have to be put. */
  readonly place?: "streamOptions" | "outputLimit";
}

/** Without it an object leaves to the provider what it does, or stands for something that only the provider has. */
export interface Needs {
  /** Only of an object that says this field. */
  readonly ifSaid?: string;
  /** One field of each list must say something: `null`, `""` and `[]` do not. */
  readonly fields: readonly (readonly string[])[];
  readonly permit: string;
  readonly why: string;
}

export type ScalarRule =
  | { readonly kind: "any" | "model" | "sameModel" | "cacheLifetime" | "mediaType" }
  /** A whole number. */
  | { readonly kind: "count"; readonly fact: "maxOutput" | "choices" | "thinking" }
  | { readonly kind: "flag"; readonly fact: "stream" | "store" | "includeUsage" }
  /**
   * One of these names, of which `*` at the end stands for anything; others pass by the permit `<permit>:<name>`.
   * `compacts`: those that have the conversation summarised, instead of an answer or beside it.
   */
  | {
      readonly kind: "oneOf";
      readonly values: readonly string[];
      readonly permit: string;
      readonly why: string;
      readonly compacts?: Readonly<Record<string, "instead" | "beside">>;
    }
  /** The content itself, whatever it says: it is no address, wherever it stands. */
  | { readonly kind: "bytes" }
  /** A name of an object of this `type`; of any other it is taken for an address. */
  | { readonly kind: "labelOf"; readonly type: string }
  /** Base64 or a data URL: some servers would fetch anything else. */
  | { readonly kind: "inline" }
  /** A data URL: anything else would be fetched. */
  | { readonly kind: "dataUrl" }
  /** Passes by the permit alone; `false` says the same as nothing. */
  | { readonly kind: "refused"; readonly permit: string; readonly why: string };

/** Why something is refused, as the end of a sentence that begins with its name. */
export const why = {
  tool: "is run by the model's provider, outside of the sandbox and its list of hosts",
  fetched: "would be fetched by the model's provider, outside of the sandbox and its list of hosts",
  kept: "is kept at the model's provider, where nobody can look at it",
  unknown: "is not known to this gateway: it may let the model's provider do more than answer",
  price: "has a price that budgets could not count",
} as const;

export const data: Shape = { isData: true };
export const any: Shape = { scalar: { kind: "any" } };
export const bytes: Shape = { scalar: { kind: "bytes" } };
export const inline: Shape = { scalar: { kind: "inline" } };
export const dataUrl: Shape = { scalar: { kind: "dataUrl" } };
export const model: Shape = { scalar: { kind: "model" } };
export const mediaType: Shape = { scalar: { kind: "mediaType" } };

export const object = (fields: Readonly<Record<string, Shape>>, rest: Omit<Shape, "fields"> = {}): Shape => ({
  fields,
  ...rest,
});
export const list = (each: () => Shape, rest: Omit<Shape, "each"> = {}): Shape => ({ each, ...rest });
/** Text, or a list of blocks. */
export const textOr = (each: () => Shape, rest: Omit<Shape, "each"> = {}): Shape => ({ ...any, each, ...rest });
export const oneOf = (permit: string, reason: string, ...values: readonly string[]): Shape => ({
  scalar: { kind: "oneOf", values, permit, why: reason },
});
export const flag = (fact: "stream" | "store" | "includeUsage"): Shape => ({ scalar: { kind: "flag", fact } });
export const count = (fact: "maxOutput" | "choices" | "thinking"): Shape => ({ scalar: { kind: "count", fact } });
/** @param permit what the operator can allow it by */
export const refused = (permit: string, reason: string): Shape => ({
  scalar: { kind: "refused", permit, why: reason },
});
export const dataFields = (...names: readonly string[]): Record<string, Shape> =>
  Object.fromEntries(names.map((name) => [name, data]));

export const url = refused("source:url", why.fetched);
export const file = refused("source:file", why.kept);
