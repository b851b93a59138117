import { setTimeout as pause } from "node:timers/promises";
import { hangTimeoutMs } from "./hang-timeout.ts";

/** Waits until `look` gives something true, and returns it. @throws after `timeoutMs`, saying what was waited for */
export async function waitFor<T>(
  look: () => T | Promise<T>,
  what: string,
  timeoutMs = hangTimeoutMs,
): Promise<NonNullable<T>> {
  const until = Date.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > until) throw new Error(`waited ${timeoutMs} ms in vain until ${what}`);
    await pause(25);
  }
}
