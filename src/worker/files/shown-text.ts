import type { Mask } from "../../domain/masking/mask.ts";
import { readableBytes } from "../../domain/sessions/workspace-file.ts";
import { createContentScanner, NotReadError } from "../secret-scan/content-scanner.ts";
import { textOf } from "./folder-page.ts";

/** Most time that a search for what looks like a secret takes, in ms. */
const searchMs = 5_000;
/** Bytes of a file that are read: those that are shown, and some behind them, so that what looks like a secret is known across the cut. */
export const searchedBytes = readableBytes + 64 * 1024;
/** Longest character of UTF-8, in bytes. */
const longestCharacter = 4;

/**
 * The text of a file as others may see it: without secrets that are known, and without what looks like one, as a session's diff hides it.
 * @param content the file's first `searchedBytes`, of which at most `readableBytes` are shown; what may go on behind that cut is left out
 * @returns null if it is no text
 * @throws NotReadError if it could not be searched
 */
export async function shownText(content: Buffer, mask: Mask, signal: AbortSignal): Promise<string | null> {
  const complete = content.length <= readableBytes;
  const shown = content.subarray(0, readableBytes);
  if (shown.includes(0)) return null;
  const text = complete ? textOf(shown) : beginningOf(shown);
  if (text === null) return null;
  const scanner = createContentScanner([], signal, searchMs);
  try {
    const { findings } = await scanner.scan(oneOf(content));
    // One character for each byte is how they are found.
    const found = findings.map(({ value }) => Buffer.from(value, "latin1").toString("utf8"));
    const all = found.length === 0 ? mask : mask.with(found);
    return all.text(complete ? text : text.slice(0, text.length - all.unfinished(text)));
  } finally {
    await scanner.close();
  }
}

/** Whether an error says that a text could not be searched, so that nobody may see it. */
export function isUnsearched(error: unknown): boolean {
  return error instanceof NotReadError;
}

/** The text of a file that was cut, perhaps within its last character. */
function beginningOf(content: Buffer): string | null {
  for (let cut = 0; cut < longestCharacter && cut <= content.length; cut += 1) {
    const text = textOf(content.subarray(0, content.length - cut));
    if (text !== null) return text;
  }
  return null;
}

async function* oneOf(content: Buffer): AsyncGenerator<Uint8Array> {
  yield content;
}
