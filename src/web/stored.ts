/**
 * What this browser remembers for the web app: preferences and drafts, as texts by name. A browser that keeps nothing for pages
 * (its storage is switched off or full) forgets them at a reload, and nothing else fails because of it.
 */
const prefix = "offstage.";
/** What was written while the browser keeps nothing. */
const kept = new Map<string, string>();

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
  // As the browser notifies other tabs of it.
  dispatchEvent(new Event("storage"));
}
