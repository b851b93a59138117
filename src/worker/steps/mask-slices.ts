import { setImmediate as nextTurn } from "node:timers/promises";
import type { Mask } from "../../domain/masking/mask.ts";

/** What is masked between two looks at everything else that the event loop has to do, in characters. */
const sliceLength = 64 * 1024;

/**
 * Masks a text of an agent's of any length, a slice at a time, and lets the event loop go on between them. A slice ends
 * where no secret can go across: after a line that is none of a longer text in base64, else before what may be the
 * beginning of a secret.
 */
export async function maskSlices(mask: Mask, text: string): Promise<string> {
  const masked: string[] = [];
  let held = "";
  for (let from = 0; from < text.length; from += sliceLength) {
    held += text.slice(from, from + sliceLength);
    const end = from + sliceLength >= text.length ? held.length : safeEnd(mask, held);
    masked.push(mask.text(held.slice(0, end)));
    held = held.slice(end);
    await nextTurn();
  }
  return masked.join("");
}

/** How far back a line is looked for that is none of a longer text in base64. */
const lookBack = 16 * 1024;

function safeEnd(mask: Mask, text: string): number {
  const whole = text.length - mask.unfinished(text);
  for (
    let end = text.lastIndexOf("\n", whole - 1);
    end > whole - lookBack && end > 0;
    end = text.lastIndexOf("\n", end - 1)
  )
    if (!/[\w+/=-]{60}\r?$/u.test(text.slice(Math.max(0, end - 61), end))) return end + 1;
  return whole;
}
