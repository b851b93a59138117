import { createHash } from "node:crypto";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { parseExactly } from "../../domain/fields/exact-json.ts";
import { cutMiddle, storable } from "../../domain/fields/text.ts";
import type { InboundDelivery } from "../delivery.ts";
import { withStorableTexts } from "../storable-texts.ts";

/** As deep as a body of the API may be, and little enough for every recursive function. */
const deepest = 64;
/** Longest title, name, address or id that an event has, in UTF-16 units; the whole is in its `payload`. */
const longestText = 2_000;
/** Longest description or message, in UTF-16 units. */
const longestProse = 50_000;
/** Most entries of a list that an event has. */
const mostEntries = 100;
/** Longest id of a delivery that is kept as it was sent. */
const longestDeliveryId = 255;

/** A JSON object that a sender made: any name may be absent, and any value may be of any type. */
export type Payload = Readonly<Record<string, unknown>>;

/**
 * Reads a body as JSON that can be stored: at most 64 levels deep; NUL and halves of surrogate pairs, which PostgreSQL can't
 * store, are replaced.
 * @throws InvalidInputError
 */
export function readJson(body: Buffer): unknown {
  const text = decodeUtf8(body);
  if (text === null) throw new InvalidInputError("the body is not UTF-8");
  let value: unknown;
  try {
    value = parseExactly(text);
  } catch {
    throw new InvalidInputError("the body is not JSON");
  }
  checkNesting(value);
  return withStorableTexts(value, text);
}

/** Reads a body as a JSON object. @throws InvalidInputError, see `readJson` */
export function readPayload({ body }: InboundDelivery): Payload {
  const value = readJson(body);
  if (!isPayload(value)) throw new InvalidInputError("the body must be a JSON object");
  return value;
}

/** The bytes as text; null if they are not UTF-8. */
export function decodeUtf8(bytes: Buffer): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function checkNesting(value: unknown): void {
  const left: { readonly value: object; readonly depth: number }[] = [];
  const add = (inner: unknown, depth: number): void => {
    if (typeof inner !== "object" || inner === null) return;
    if (depth > deepest) throw new InvalidInputError(`the body is nested deeper than ${deepest} levels`);
    left.push({ value: inner, depth });
  };
  add(value, 1);
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    for (const item of Object.values(next.value)) add(item, next.depth + 1);
  }
}

/** Whether a value is a JSON object. */
export function isPayload(value: unknown): value is Payload {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The value at a path of names; undefined if there is none. Only a value's own names count: Jira's changes have one
 * that every object inherits (`toString`).
 */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) => (isPayload(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined),
    value,
  );
}

/** The object at a path; null if there is none. */
export function objectAt(value: unknown, ...path: readonly string[]): Payload | null {
  const found = at(value, ...path);
  return isPayload(found) ? found : null;
}

/** The entries of the list at a path, at most 100; empty if there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.slice(0, mostEntries) : [];
}

/** The text at a path, a number as its digits; null if it is absent, empty, or anything else. Cut to 2,000 characters. */
export function textAt(value: unknown, ...path: readonly string[]): string | null {
  const found = textOf(at(value, ...path));
  return found === null || found === "" ? null : storable(found.slice(0, longestText));
}

/** The text of people at a path, cut in its middle to 50,000 characters; empty if there is none. */
export function proseAt(value: unknown, ...path: readonly string[]): string {
  return prose(textOf(at(value, ...path)) ?? "");
}

/** A text of people, cut in its middle to 50,000 characters. */
export function prose(text: string): string {
  return cutMiddle(text, longestProse);
}

/** The number at a path; null if there is none. */
export function numberAt(value: unknown, ...path: readonly string[]): number | null {
  const found = at(value, ...path);
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "number" && Number.isFinite(value) ? String(value) : null;
}

/** Like `textAt`. @throws InvalidInputError if there is none */
export function requiredText(value: unknown, ...path: readonly string[]): string {
  const found = textAt(value, ...path);
  if (found === null) throw new InvalidInputError(`${path.join(".")} must be a text that is not empty`);
  return found;
}

/** Like `objectAt`. @throws InvalidInputError if there is none */
export function requiredObject(value: unknown, ...path: readonly string[]): Payload {
  const found = objectAt(value, ...path);
  if (found === null) throw new InvalidInputError(`${path.join(".")} must be an object`);
  return found;
}

/** The key of a happening: a digest of what identifies it, so its length does not depend on the sender. */
export function contentKey(...parts: readonly (string | null)[]): string {
  return digestOf(JSON.stringify(parts));
}

/** The sender's id of a delivery; a digest of one that is longer than 255 characters, null if there is none. */
export function deliveryIdOf(sent: string | null | undefined): string | null {
  if (sent === null || sent === undefined || sent === "") return null;
  const id = storable(sent);
  return id.length <= longestDeliveryId ? id : digestOf(id);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The host of an address, with its port; null if it is no http address. */
export function hostOf(url: string | null): string | null {
  const parsed = url === null ? null : URL.parse(url);
  return parsed !== null && /^https?:$/u.test(parsed.protocol) ? parsed.host : null;
}

/** An address that links may have: http or https; null if it is none, such as `javascript:`. */
export function linkAt(value: unknown, ...path: readonly string[]): string | null {
  const found = textAt(value, ...path);
  return hostOf(found) === null ? null : found;
}
