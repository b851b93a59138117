import { z } from "zod";
import { storable } from "../fields/text.ts";
import { bytesWrittenOut } from "../fields/written-numbers.ts";

/** An automation's state has at most so many keys. */
export const mostKeys = 100;
/** Most bytes of one value, and of all of an automation's together, as compact JSON in UTF-8, numbers without exponents. */
export const longestValue = 16 * 1024;
/** See `longestValue`. */
export const longestState = 256 * 1024;
/** Objects and arrays in each other in a value. */
const deepestValue = 32;

/** A key of an automation's state. */
export const stateKeySchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$/u,
    "must be 1 to 100 of A-Z, a-z, 0-9, . _ : / and -, and start with a letter or digit",
  );

/** Any JSON, as what was parsed is. `z.json()` would be described by a reference to itself, which the API's description does not have. */
const jsonSchema = z.unknown().meta({ description: "Any JSON." }) as z.ZodType<z.core.util.JSONType>;

/** A value of an automation's state: any JSON within the bounds. */
export const stateValueSchema = jsonSchema.superRefine((value, context) => {
  const problem = valueProblem(value);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
});

/** The problem with a value; null: none. */
function valueProblem(value: unknown): string | null {
  if (!isAtMostDeep(value, deepestValue)) return `must not be nested more than ${deepestValue} deep`;
  if (bytesWrittenOut(value) > longestValue)
    return `must be at most ${longestValue / 1024} KiB of JSON, numbers written out`;
  return isStorable(value) ? null : "must be valid Unicode without NUL (U+0000), in names too";
}

function isStorable(value: unknown): boolean {
  if (typeof value === "string") return storable(value) === value;
  if (value === null || typeof value !== "object") return true;
  return Object.entries(value).every(([name, inner]) => storable(name) === name && isStorable(inner));
}

function isAtMostDeep(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== "object") return true;
  return levels > 0 && Object.values(value).every((inner) => isAtMostDeep(inner, levels - 1));
}

const version = z.number().int().min(0);

/** Body of an update of an automation's state: all of it is done, or nothing. */
export const updateStateSchema = z.object({
  set: z.record(stateKeySchema, stateValueSchema).default({}),
  remove: z.array(stateKeySchema).max(mostKeys).default([]),
  versions: z.record(stateKeySchema, version).default({}).meta({
    description:
      "Of keys: the version that was read; 0: there was no such key. If one has another by now, nothing is changed. A key that is not named is changed whatever its version.",
  }),
});
/** See `updateStateSchema`. */
export type UpdateState = z.infer<typeof updateStateSchema>;

/** One key of an automation's state. */
export const stateEntrySchema = z.object({
  key: z.string(),
  value: jsonSchema,
  version: version.meta({ description: "Another one after each write." }),
  sessionId: z.uuid().nullable().meta({ description: "The session whose agent wrote it; null: the API did." }),
  updatedAt: z.iso.datetime(),
});
/** See `stateEntrySchema`. */
export type StateEntry = z.infer<typeof stateEntrySchema>;

/** An automation's state, ordered by key. */
export const stateSchema = z.object({ entries: z.array(stateEntrySchema) });
/** See `stateSchema`. */
export type AutomationState = z.infer<typeof stateSchema>;
