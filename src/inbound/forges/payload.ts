import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { InboundDelivery } from "../delivery.ts";
import { withStorableTexts } from "../storable-texts.ts";

/**
 * A value of a payload that its sender documents as `Documented`. Whatever is documented, each field may be missing, null or of
 * another type, so nothing can be read but through the functions below; that a field is documented at all is checked.
 */
export type Untrusted<Documented> = [Extract<Documented, object>] extends [never]
  ? unknown
  : UntrustedObject<Extract<Documented, object>> | null | undefined;
type UntrustedObject<Documented extends object> = Documented extends readonly (infer Item)[]
  ? readonly Untrusted<Item>[]
  : { readonly [Field in keyof Documented]?: Untrusted<Documented[Field]> };

/** Deeper nesting than any sender uses; programs that walk a value by recursion survive it. */
const deepestNesting = 100;

/**
 * The payload of a delivery: its body as JSON or, if the webhook was set up to send forms, as JSON in the field `payload` of a form.
 * Texts in it can be stored.
 * @throws InvalidInputError if there is none
 */
export function readPayload({ headers, body }: InboundDelivery): Record<string, unknown> {
  // Skips a byte order mark. What is not UTF-8 becomes U+FFFD: only the signature is over the bytes.
  const decoded = new TextDecoder("utf-8").decode(body);
  const isForm = headers["content-type"]?.toLowerCase().startsWith("application/x-www-form-urlencoded") === true;
  const json = isForm ? new URLSearchParams(decoded).get("payload") : decoded;
  if (json === null) throw new InvalidInputError("payload: must be a field of the form");
  const parsed = parse(json);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new InvalidInputError("body: must be a JSON object");
  }
  refuseDeepNesting(parsed, 0);
  return withStorableTexts(parsed, json) as Record<string, unknown>;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new InvalidInputError("body: must be JSON", { cause: error });
  }
}

function refuseDeepNesting(value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null) return;
  if (depth === deepestNesting) throw new InvalidInputError(`body: must be nested at most ${deepestNesting} deep`);
  for (const inner of Object.values(value)) refuseDeepNesting(inner, depth + 1);
}

/** The first `longest` UTF-16 units of a text, without half a character at the end; null if the value is no text. */
export function text(value: unknown, longest: number): string | null {
  if (typeof value !== "string") return null;
  return value.length <= longest
    ? value
    : value
        .slice(0, longest)
        .replace(/[\ud800-\udbff]$/u, "")
        .toWellFormed();
}

/** The last `longest` UTF-16 units of a text; null if the value is no text. */
export function endOfText(value: unknown, longest: number): string | null {
  if (typeof value !== "string") return null;
  return value.length <= longest ? value : value.slice(-longest).toWellFormed();
}

/** An id as text, which some senders send as a number; null if the value is neither or empty. */
export function identifier(value: unknown): string | null {
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  return typeof value === "string" && value !== "" ? text(value, 200) : null;
}

/** A whole number; null if the value is none. */
export function integer(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}

/** The lines that a comment is on. @param first of several lines; the same as the last, or none, of one */
export function lines(first: unknown, line: unknown): { readonly line: number | null; readonly firstLine?: number } {
  const [from, to] = [integer(first), integer(line)];
  return { line: to, ...(from !== null && to !== null && from !== to && { firstLine: from }) };
}

/** The items of a list, at most `longest`; none if the value is no list. */
export function list<Item>(value: readonly Item[] | null | undefined, longest = 100): readonly Item[] {
  return Array.isArray(value) ? (value as readonly Item[]).slice(0, longest) : [];
}

/** The non-null values of a list. */
export function present<Value>(values: readonly (Value | null)[]): Value[] {
  return values.filter((value) => value !== null);
}

/**
 * A value without which a payload says nothing.
 * @param name of the field, for the error
 * @throws InvalidInputError if there is none
 */
export function required<Value>(value: Value | null, name: string): Value {
  if (value === null) throw new InvalidInputError(`${name}: is missing or not as documented`);
  return value;
}

/** The meaning of a word of a payload; null if the word is unknown. */
export function choice<Meaning>(value: unknown, meanings: Readonly<Record<string, Meaning>>): Meaning | null {
  return typeof value === "string" && Object.hasOwn(meanings, value) ? (meanings[value] ?? null) : null;
}
