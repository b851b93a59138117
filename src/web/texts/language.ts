import { readStored, writeStored } from "../stored.ts";

/** Languages of the web app. English is complete by itself; each other one has all texts of English. */
export const languages = ["en", "de"] as const;
/** See `languages`. */
export type Language = (typeof languages)[number];

/** Name of each language, in itself. */
export const languageNames: Record<Language, string> = { en: "English", de: "Deutsch" };

const key = "language";
let current: Language = "en";
const listeners = new Set<() => void>();

/** The language of what is shown. */
export function currentLanguage(): Language {
  return current;
}

/** The language that was chosen in this browser; null: none, so that the browser's own is shown, or English. */
export function chosenLanguage(): Language | null {
  return languages.find((language) => language === readStored(key)) ?? null;
}

/** Remembers a choice, which the next `showLanguage` follows. */
export function chooseLanguage(chosen: Language | null): void {
  writeStored(key, chosen);
}

/**
 * The language that is to be shown: the chosen one, else the first of the browser's that there are texts in, else English.
 * @param chosen null: as if none was chosen
 */
export function wantedLanguage(chosen: Language | null = chosenLanguage()): Language {
  return chosen ?? navigator.languages.map(languageOf).find((language) => language !== null) ?? "en";
}

/** Shows a language from now on. Its texts must have been loaded (`loadTexts`), or pages are drawn again when they are. */
export function showLanguage(language: Language): void {
  current = language;
  document.documentElement.lang = language;
  for (const listener of listeners) listener();
}

/** Calls a function after each change of the language. @returns a function that ends this */
export function onLanguage(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Locale of numbers and times in a language: as the browser prefers it, such as `en-GB` or `de-AT`. */
export function localeOf(language: Language): string {
  return navigator.languages.find((tag) => languageOf(tag) === language && isLocale(tag)) ?? language;
}

/** For libraries that take the browser's language for a locale: if it is none (`isLocale`), puts ours in its place. */
export function requireLocale(): void {
  if (isLocale(navigator.language)) return;
  Object.defineProperty(navigator, "language", { value: localeOf(current), configurable: true });
}

/** Whether a tag is one by BCP 47: some browsers pass on what the system calls its language, such as `en-US@posix`. */
function isLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length > 0;
  } catch {
    return false;
  }
}

function languageOf(tag: string): Language | null {
  const primary = tag.toLowerCase().split("-")[0];
  return languages.find((language) => language === primary) ?? null;
}
