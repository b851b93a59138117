/** Matches possible numbers that JavaScript can't hold: a quick check, which also finds such digits in texts. */
const suspicious = /\d{16}|[eE]\+?\d{3}/u;
/** A text of JSON with its quotes, or a number. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/gsu;

/**
 * Parses JSON of others whose values are to arrive as they were sent: a number that JavaScript can't hold becomes a text of its digits,
 * as an id of nineteen digits, of which `JSON.parse` would make another id, or `1e400`, of which it would make `Infinity`.
 * @throws SyntaxError as `JSON.parse`
 */
export function parseExactly(json: string): unknown {
  return JSON.parse(exactJson(json));
}

/**
 * The same JSON as `parseExactly` reads it, for who parses it then: what JavaScript can't hold is a text.
 * @throws SyntaxError as `JSON.parse`, if there is something to change
 */
export function exactJson(json: string): string {
  if (!suspicious.test(json)) return json;
  JSON.parse(json);
  return json.replace(token, (each) => (each.startsWith('"') || isHeld(each) ? each : `"${each}"`));
}

/** Whole numbers are exact up to 2^53; others are rounded, as in any JSON. */
function isHeld(digits: string): boolean {
  const value = Number(digits);
  return /^-?\d+$/u.test(digits) ? Number.isSafeInteger(value) : Number.isFinite(value);
}
