/**
 * The web app's storage in this browser: preferences and drafts, as texts by name. If the browser stores nothing for
 * pages (its storage is switched off or full), they are lost at a reload, and nothing else fails.
 */
const prefix = "offstage.";
/** Texts written while the browser stores nothing. */
const kept = new Map<string, string>();

/** The text that was remembered under a name; null if there is none. */
export function readStored(name: string): string | null {
  try {
    // A text that could not be stored is newer than the stored one: the storage may have become full.
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
