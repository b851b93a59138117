import { useSyncExternalStore } from "react";
import { readStored, writeStored } from "./stored.ts";

/**
 * A text that is stored under a name for all tabs of the browser, and a function that updates the current one, so that
 * an old tab reverts nothing.
 */
export function useStored(name: string): [string | null, (change: (text: string | null) => string | null) => void] {
  const text = useSyncExternalStore(subscribe, () => readStored(name));
  return [text, (change) => writeStored(name, change(readStored(name)))];
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("storage", listener);
  return () => window.removeEventListener("storage", listener);
}
