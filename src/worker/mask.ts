import type { NewEvent } from "../domain/event.ts";

/** Shorter values are too likely to be ordinary words to be replaced everywhere. */
const shortestSecret = 8;

export interface Mask {
  text(value: string): string;
  event(event: NewEvent): NewEvent;
}

/**
 * Replaces every known secret in what is about to be stored or shown.
 * The last line of defence, not the first: a secret should not get near the text at all.
 */
export function createMask(secrets: readonly string[]): Mask {
  // Longest first: one secret may begin with another.
  const known = [...new Set(secrets.filter((secret) => secret.length >= shortestSecret))].sort(
    (a, b) => b.length - a.length,
  );
  const text = (value: string): string =>
    known.reduce((masked, secret) => (masked.includes(secret) ? masked.replaceAll(secret, "[secret]") : masked), value);

  function deep(value: unknown): unknown {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return value.map(deep);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, deep(inner)]));
  }
  return {
    text,
    event: (event) => (known.length === 0 ? event : ({ type: event.type, data: deep(event.data) } as NewEvent)),
  };
}
