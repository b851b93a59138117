import type * as acp from "@agentclientprotocol/sdk";
import { cutMiddle, storable } from "../../domain/fields/text.ts";
import type { Mask } from "../../domain/masking/mask.ts";

/** Maximum characters of one text in an event: of a message, or of a tool's output. */
export const outputLimit = 20_000;
/**
 * Maximum characters of all texts of one event, because an event costs the server's event loop time in proportion to
 * its length. Each text may still have `shortestCut`.
 */
const textsLimit = 48_000;
const shortestCut = 200;
/** Characters of a text that are searched for secrets, far more than are kept: what is kept ends far before the cut. */
const lookedThrough = 400_000;

/** The beginning of a text, masked before it is cut. */
export function startOf(text: string, length: number, mask: Mask): string {
  return mask.text(text.slice(0, lookedThrough)).slice(0, length);
}

/** Shortens a text that is one of `among` texts in an event. */
export function shown(text: string, among: number, mask: Mask): string {
  const room = Math.max(shortestCut, Math.floor(textsLimit / among));
  return cutMiddle(mask.text(cutMiddle(text, lookedThrough)), Math.min(outputLimit, room));
}

/** Splits a text into events of limited length, never inside a character. */
export function* piecesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(text.length, from + outputLimit);
    if (to < text.length && /[\ud800-\udbff]/u.test(text.charAt(to - 1))) to -= 1;
    yield text.slice(from, to);
    from = to;
  }
}

/** The text of what the protocol sends as content; empty if it is none. */
export function textOf(block: acp.ContentBlock): string {
  return block.type === "text" ? storable(block.text) : "";
}
