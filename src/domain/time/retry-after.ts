/**
 * How long an answer asks its reader to wait: the Retry-After header of RFC 9110 (section 10.2.3), as seconds or as a date.
 * Fractions of a second are no part of the RFC, and some servers send them.
 * @param value the header; undefined or null if there is none
 * @param now the current time, in ms since 1970
 * @returns ms, 0 if the date has passed; null if the header is absent or is neither
 */
export function retryAfterMs(value: string | null | undefined, now: number = Date.now()): number | null {
  if (value === null || value === undefined) return null;
  const text = value.slice(0, longestValue).trim();
  if (/^\d+(?:\.\d+)?$/u.test(text)) return Number(text) * 1_000;
  // JavaScript takes much for a date that is none; those of the RFC begin with a day.
  const at = /^[a-z]/iu.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

/** Longest wait of a job that is tried again by itself: a server that asks for more is asked again in an hour all the same. */
const longestWaitMs = 60 * 60_000;

/** As `retryAfterMs`, and at most an hour. */
export function boundedRetryAfterMs(value: string | null | undefined, now: number = Date.now()): number | null {
  const asked = retryAfterMs(value, now);
  return asked === null ? null : Math.min(asked, longestWaitMs);
}

/** A date of RFC 9110 has 29 characters; the longest of its older forms has 33. */
const longestValue = 64;
