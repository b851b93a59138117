import { retryAfterMs } from "../../domain/time/retry-after.ts";

/** Environment that has git write the headers of HTTP to a file descriptor (git(1), GIT_TRACE_CURL), and no content. */
export const headerTrace = (descriptor: number): Record<string, string> => ({
  GIT_TRACE_CURL: String(descriptor),
  GIT_TRACE_CURL_NO_DATA: "1",
});

/** Reads git's trace of headers as it comes. */
export interface HeaderTrace {
  /** Receives the next piece of the trace. */
  readonly read: (chunk: Buffer) => void;
  /** How long the last answer asked to wait, in ms; null if it did not, or refused nothing that passes. */
  readonly askedMs: () => number | null;
}

/** Most characters of a line that are looked at; a Retry-After is far shorter. */
const longestLine = 500;
/** A header as git writes it: after its time and place in git's source, unless they are switched off. */
const received = /^(?:\S+ \S+ +)?<= Recv header: (.*)$/u;
const statusLine = /^HTTP\/\S+ (\d{3})\b/u;
const retryAfter = /^retry-after:(.*)$/iu;

/**
 * Reads from git's trace how long a server asks to wait: git itself does not print it. Of all else, such as the server's cookies, nothing
 * is kept.
 */
export function readHeaderTrace(): HeaderTrace {
  let line = "";
  let passes = false;
  let asked: number | null = null;
  const take = (text: string): void => {
    const header = received.exec(text)?.[1];
    if (header === undefined) return;
    const status = statusLine.exec(header)?.[1];
    if (status !== undefined) {
      // GitHub limits requests by 403, too (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api).
      passes = status === "403" || status === "429" || status.startsWith("5");
      asked = null;
    } else if (passes) {
      asked = retryAfterMs(retryAfter.exec(header)?.[1]) ?? asked;
    }
  };
  return {
    read(chunk) {
      const [first = "", ...others] = chunk.toString("latin1").split("\n");
      line = `${line}${first}`.slice(0, longestLine);
      for (const next of others) {
        take(line.trimEnd());
        line = next.slice(0, longestLine);
      }
    },
    askedMs: () => asked,
  };
}
