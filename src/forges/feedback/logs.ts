import { stripVTControlCharacters } from "node:util";
import { SessionError } from "../../domain/errors/errors.ts";
import { ForgeUnavailable } from "../http/http.ts";
import { answerTooLarge, currentReach } from "../http/reach.ts";
import { refusedBy } from "../http/refusal.ts";

/** How long a log may take, in ms. */
const timeLimitMs = 60_000;
/** A log that is longer is not read: its end can't be found. By a reach, the bound is the reach's. */
const longestLog = 256 * 1024 ** 2;

/**
 * Reads the end of a CI job's log, without the escape sequences of terminals, from the beginning of a line.
 * @param url of the forge's API; if it answers with another address, as GitHub does, that one is asked without the credentials
 * @param bytes at most so many are kept
 * @returns null if the log is gone, or not there yet, or too long: over 256 MiB, of an organization's forge over 16 MiB
 * @throws ForgeUnavailable, SessionError
 */
export async function readLogEnd(
  url: string,
  {
    headers,
    bytes,
    signal,
  }: { readonly headers: Record<string, string>; readonly bytes: number; readonly signal: AbortSignal },
): Promise<string | null> {
  const { host } = new URL(url);
  const reach = currentReach();
  const request = reach?.fetch ?? fetch;
  const until = AbortSignal.any([signal, AbortSignal.timeout(timeLimitMs)]);
  try {
    const asked = await request(url, {
      headers: { "User-Agent": "offstage", ...headers },
      redirect: "manual",
      signal: until,
    });
    const elsewhere = addressIn(asked, url);
    if (elsewhere !== null) await asked.body?.cancel();
    else if (asked.status === 401 || asked.status === 403) reach?.refused();
    const answer = elsewhere === null ? asked : await request(elsewhere.href, { redirect: "error", signal: until });
    if (answer.status === 404 || answer.status === 410) return null;
    if (answer.status >= 500 || answer.status === 429) throw unavailable(host, `it answered ${answer.status}`);
    if (answer.status !== 200) throw refusedBy(host, { status: answer.status, body: null }, "log of a job");
    const end = await endOf(answer, bytes);
    return end === null ? null : asText(end);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SessionError) throw error;
    if (isTooLarge(error)) return null;
    throw unavailable(
      host,
      until.aborted ? `its log took longer than ${timeLimitMs / 1_000} s` : "its log could not be read",
    );
  }
}

/** Whether a reach gave an answer up for its size. */
function isTooLarge(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: unknown } };
  return cause?.code === answerTooLarge;
}

/** The log's address as the forge gives it; not over plain http if the forge is asked by https. */
function addressIn({ status, headers }: Response, url: string): URL | null {
  const location = headers.get("location");
  if (status < 300 || status >= 400 || location === null) return null;
  const address = new URL(location, url);
  const isSafe = address.protocol === "https:" || (address.protocol === "http:" && url.startsWith("http:"));
  return isSafe ? address : null;
}

function unavailable(host: string, words: string): ForgeUnavailable {
  return new ForgeUnavailable(host, words, { isOpen: false, waitMs: null });
}

/** The last bytes and whether something came before them; null if there is too much. */
async function endOf(
  { body }: Response,
  bytes: number,
): Promise<{ readonly kept: Buffer; readonly isCut: boolean } | null> {
  let kept = Buffer.alloc(0);
  let read = 0;
  for await (const chunk of body ?? []) {
    read += chunk.length;
    if (read > longestLog) return null;
    kept = Buffer.concat([kept, chunk]).subarray(-bytes);
  }
  return { kept, isCut: read > bytes };
}

function asText({ kept, isCut }: { readonly kept: Buffer; readonly isCut: boolean }): string {
  const text = kept.toString("utf8");
  const whole = isCut ? text.slice(text.indexOf("\n") + 1) : text;
  return stripVTControlCharacters(whole).replaceAll(/\r\n?/gu, "\n").replaceAll("\0", "");
}
