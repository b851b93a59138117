import { useSyncExternalStore } from "react";

/**
 * What this browser remembers for the web app: preferences and drafts, as texts by name. A browser that keeps nothing for pages
 * (its storage is switched off or full) forgets them at a reload, and nothing else fails because of it.
 */
const prefix = "offstage.";
/** What was written while the browser keeps nothing. */
const kept = new Map<string, string>();
const listeners = new Set<() => void>();

/** The text that was remembered under a name; null if there is none. */
export function readStored(name: string): string | null {
  try {
    // What could not be kept is newer than what is: the storage may have become full.
    return kept.get(name) ?? localStorage.getItem(prefix + name);
  } catch {
    return null;
  }
}

/** Remembers a text; null forgets it. */
export function writeStored(name: string, text: string | null): void {
  kept.delete(name);
  try {
    if (text === null) localStorage.removeItem(prefix + name);
    else localStorage.setItem(prefix + name, text);
  } catch {
    if (text !== null) kept.set(name, text);
  }
  for (const listener of listeners) listener();
}

/**
 * A text that is remembered under a name, as this and all other tabs of the browser have written it, and a function that writes another
 * one, made of the one that there is then: a tab that was opened long ago takes nothing back.
 */
export function useStored(name: string): [string | null, (change: (text: string | null) => string | null) => void] {
  const text = useSyncExternalStore(subscribe, () => readStored(name));
  return [text, (change) => writeStored(name, change(readStored(name)))];
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Other tabs tell of what they wrote.
  window.addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}
