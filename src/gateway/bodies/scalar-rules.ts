import { matchesPattern, refuseUnlessAllowed, RequestRefusedError } from "../refusal.ts";
import type { Scalar } from "./json-scanner.ts";
import { why, type ScalarRule } from "./shape.ts";

const longestModel = 200;

/** A model's name. @param called name of the value in the refusal @throws RequestRefusedError */
export function modelName({ kind, text }: Scalar, called: () => string): string {
  if (kind === "string" && text !== null && text.length <= longestModel && /^[\x21-\x7e]+$/u.test(text)) return text;
  throw new RequestRefusedError(
    400,
    `${called()} of the body must be a model's name: at most ${longestModel} characters, in ASCII`,
  );
}

/** A whole number of at most nine digits. @throws RequestRefusedError */
export function wholeNumber({ kind, text }: Scalar, called: () => string): number {
  // Programs differ in how they read other spellings of a number.
  if (kind === "number" && text !== null && /^\d{1,9}$/u.test(text)) return Number(text);
  throw new RequestRefusedError(400, `${called()} of the body must be a whole number of at most nine digits`);
}

/** `true` or `false`. @throws RequestRefusedError */
export function truth({ kind, text }: Scalar, called: () => string): boolean {
  if (kind === "literal") return text === "true";
  throw new RequestRefusedError(400, `${called()} of the body must be true or false`);
}

/** One of the allowed names. @returns the name, and whether only the operator allows it @throws RequestRefusedError */
export function oneOfNames(
  permits: readonly string[],
  rule: Extract<ScalarRule, { kind: "oneOf" }>,
  { kind, text }: Scalar,
  called: () => string,
): { readonly name: string; readonly isPermitted: boolean } {
  if (kind !== "string" || text === null || !/^[\w.:/-]{1,100}$/u.test(text))
    throw new RequestRefusedError(400, `${called()} of the body must be a name of at most 100 letters and digits`);
  if (rule.values.some((value) => matchesPattern(value, text))) return { name: text, isPermitted: false };
  refuseUnlessAllowed(permits, `${rule.permit}:${text}`, `${called()} is ${text}, which ${rule.why}`);
  return { name: text, isPermitted: true };
}

/** Matched against the bytes as they are written: escapes could hide an address. */
const inlineStart = {
  bytes: /^/u,
  inline: /^(?:data:|(?:[A-Za-z0-9+/=_-]|\\\/)*$)/u,
  dataUrl: /^data:/u,
};

/** Requires content in the body itself, not an address. @throws RequestRefusedError */
export function requireInline(
  kind: keyof typeof inlineStart,
  { kind: type, start }: Scalar,
  called: () => string,
): void {
  if (type === "string" && inlineStart[kind].test(start.slice(0, 100))) return;
  const must = `${called()} must hold its content as ${kind === "dataUrl" ? "a data URL" : "base64 or a data URL"}`;
  throw new RequestRefusedError(403, `${must}: anything else ${why.fetched}`);
}

/** Refuses a value unless the operator allows it by name. @throws RequestRefusedError */
export function refuse(
  permits: readonly string[],
  rule: Extract<ScalarRule, { kind: "refused" }>,
  called: () => string,
): void {
  refuseUnlessAllowed(permits, rule.permit, `${called()} ${rule.why}`);
}
