import { useSyncExternalStore } from "react";
import { readStored, writeStored } from "./stored.ts";

/**
 * A text that is remembered under a name, as this and all other tabs of the browser have written it, and a function that writes another
 * one, made of the one that there is then: a tab that was opened long ago takes nothing back.
 */
export function useStored(name: string): [string | null, (change: (text: string | null) => string | null) => void] {
  const text = useSyncExternalStore(subscribe, () => readStored(name));
  return [text, (change) => writeStored(name, change(readStored(name)))];
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("storage", listener);
  return () => window.removeEventListener("storage", listener);
}
