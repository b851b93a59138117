import { setImmediate as nextTurn } from "node:timers/promises";
import type { Mask } from "../../../domain/masking/mask.ts";

/** Characters that are masked before the event loop gets to do other work. */
const sliceLength = 64 * 1024;

/**
 * Masks a text of any length in slices, and lets the event loop run between them. A slice ends where no secret can continue:
 * after a line that is not a full line of base64, else before the possible beginning of a secret.
 */
export async function maskSlices(mask: Mask, text: string): Promise<string> {
  const masked: string[] = [];
  let pending = "";
  for (let from = 0; from < text.length; from += sliceLength) {
    pending += text.slice(from, from + sliceLength);
    const end = from + sliceLength >= text.length ? pending.length : safeEnd(mask, pending);
    masked.push(mask.text(pending.slice(0, end)));
    pending = pending.slice(end);
    await nextTurn();
  }
  return masked.join("");
}

/** Characters that are searched backwards for such a line. */
const searchBackLimit = 16 * 1024;

function safeEnd(mask: Mask, text: string): number {
  const whole = text.length - mask.unfinished(text);
  for (
    let end = text.lastIndexOf("\n", whole - 1);
    end > whole - searchBackLimit && end > 0;
    end = text.lastIndexOf("\n", end - 1)
  )
    if (!/[\w+/=-]{60}\r?$/u.test(text.slice(Math.max(0, end - 61), end))) return end + 1;
  return whole;
}
