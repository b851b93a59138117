/**
 * The allowed content of a part of a request's body, as data: one table for each operation, in the files beside this
 * one. Fields that no table names are refused, so that a provider receives nothing that the gateway did not understand.
 */
export interface Shape {
  /** Text that the model reads, or a harmless setting: its contents are not checked. */
  readonly isData?: boolean;
  /** Rule for a string, number, `true` or `false`, if it may be one. `null` counts as omitted. */
  readonly scalar?: ScalarRule;
  /**
   * Shape of a list's elements, if it may be a list. A function, because shapes are recursive: a tool's result contains
   * blocks, like a message.
   */
  readonly each?: () => Shape;
  /** Fields by name, if it may be an object. */
  readonly fields?: Readonly<Record<string, Shape>>;
  /** Unknown fields are allowed if the operator allowed the object's `type` by name. */
  readonly opensByType?: boolean;
  /** Required fields by the object's `type`: `""` if it has none. */
  readonly needs?: Readonly<Record<string, Needs>>;
  /** A list whose elements are counted. */
  readonly counts?: "turns" | "tools" | "prompts";
  /** Kind of the object's media, if its fields don't say it. */
  readonly holds?: "sound";
  /** An object into which a field may have to be inserted. */
  readonly place?: "streamOptions" | "outputLimit";
}

/** Required fields. An object without them leaves its content to the provider, or refers to something stored there. */
export interface Needs {
  /** Applies only to an object that has this field. */
  readonly ifPresent?: string;
  /** One field of each list must be set: `null`, `""` and `[]` do not count. */
  readonly fields: readonly (readonly string[])[];
  readonly permit: string;
  readonly why: string;
}

/** Rule for a string, number or literal. */
export type ScalarRule =
  | { readonly kind: "any" | "model" | "sameModel" | "cacheLifetime" | "mediaType" }
  /** A whole number. */
  | { readonly kind: "count"; readonly fact: "maxOutput" | "choices" | "thinking" }
  | { readonly kind: "flag"; readonly fact: "stream" | "store" | "includeUsage" }
  /**
   * One of these names, of which `*` at the end stands for anything; others pass by the permit `<permit>:<name>`.
   * `compacts`: those that have the conversation summarised, instead of an answer or in addition to it.
   */
  | {
      readonly kind: "oneOf";
      readonly values: readonly string[];
      readonly permit: string;
      readonly why: string;
      readonly compacts?: Readonly<Record<string, "instead" | "beside">>;
    }
  /** The content itself, never an address. */
  | { readonly kind: "bytes" }
  /** A label if the object has this `type`; in any other it is treated as an address. */
  | { readonly kind: "labelOf"; readonly type: string }
  /** Base64 or a data URL: some servers would fetch anything else. */
  | { readonly kind: "inline" }
  /** A data URL: servers would fetch anything else. */
  | { readonly kind: "dataUrl" }
  /** Allowed by the permit only; `false` counts as omitted. */
  | { readonly kind: "refused"; readonly permit: string; readonly why: string };

/** Reasons of refusals, as the end of a sentence that begins with the field's name. */
export const why = {
  tool: "is run by the model's provider, outside of the sandbox and its list of hosts",
  fetched: "would be fetched by the model's provider, outside of the sandbox and its list of hosts",
  kept: "is stored at the model's provider, where it can't be inspected",
  unknown: "is not known to this gateway: it may let the model's provider do more than answer",
  price: "has a price that budgets could not count",
} as const;

/** See `Shape.isData`. */
export const data: Shape = { isData: true };
/** Any string, number or literal. */
export const any: Shape = { scalar: { kind: "any" } };
/** The content itself, never an address. */
export const bytes: Shape = { scalar: { kind: "bytes" } };
/** Base64 or a data URL. */
export const inline: Shape = { scalar: { kind: "inline" } };
/** A data URL. */
export const dataUrl: Shape = { scalar: { kind: "dataUrl" } };
/** A model's name. */
export const model: Shape = { scalar: { kind: "model" } };
/** A media type, which says how its neighbour is read. */
export const mediaType: Shape = { scalar: { kind: "mediaType" } };

/** An object with these fields. */
export const object = (fields: Readonly<Record<string, Shape>>, rest: Omit<Shape, "fields"> = {}): Shape => ({
  fields,
  ...rest,
});
/** A list of elements of one shape. */
export const list = (each: () => Shape, rest: Omit<Shape, "each"> = {}): Shape => ({ each, ...rest });
/** Text, or a list of blocks. */
export const textOr = (each: () => Shape, rest: Omit<Shape, "each"> = {}): Shape => ({ ...any, each, ...rest });
/** One of these names; others need the permit `<permit>:<name>`. */
export const oneOf = (permit: string, reason: string, ...values: readonly string[]): Shape => ({
  scalar: { kind: "oneOf", values, permit, why: reason },
});
/** `true` or `false`, recorded as a fact. */
export const flag = (fact: "stream" | "store" | "includeUsage"): Shape => ({ scalar: { kind: "flag", fact } });
/** A whole number, recorded as a fact. */
export const count = (fact: "maxOutput" | "choices" | "thinking"): Shape => ({ scalar: { kind: "count", fact } });
/** Refused unless the operator allows it. @param permit name by which the operator can allow it */
export const refused = (permit: string, reason: string): Shape => ({
  scalar: { kind: "refused", permit, why: reason },
});
/** Fields that are all data. */
export const dataFields = (...names: readonly string[]): Record<string, Shape> =>
  Object.fromEntries(names.map((name) => [name, data]));

/** An address that the provider would fetch. */
export const url = refused("source:url", why.fetched);
/** A reference to a file stored at the provider. */
export const file = refused("source:file", why.kept);
