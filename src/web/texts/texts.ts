import { use, useSyncExternalStore } from "react";
import { currentLanguage, onLanguage, type Language } from "./language.ts";

type Loader = (language: Language) => Promise<unknown>;
/** Of the parts of the app that are loaded so far. */
const loaders = new Set<Loader>();

/**
 * The texts of one part of the app, in all languages.
 * @param english loaded with the part
 * @param others how each further language's are loaded, when it is shown; they have everything that English has
 * @returns a hook with the texts of the present language; English if the others can't be loaded. A component that uses it is drawn
 *   when they are there
 */
export function textsOf<Texts extends object>(
  english: Texts,
  others: Readonly<Record<Exclude<Language, "en">, () => Promise<{ readonly default: Texts }>>>,
): () => Texts {
  const loading = new Map<Language, Promise<Texts>>();
  const load = (language: Language): Promise<Texts> => {
    if (language === "en") return Promise.resolve(english);
    const known = loading.get(language);
    if (known !== undefined) return known;
    const asked = others[language]().then(
      (module) => module.default,
      () => english,
    );
    loading.set(language, asked);
    // React reads these, and does not wait for a promise that has them.
    void asked.then((value) => Object.assign(asked, { status: "fulfilled", value }));
    return asked;
  };
  loaders.add(load);
  return function useTexts() {
    // A component with words follows the language itself, and draws what is below it: nothing is made anew, and what is written stays.
    const language = useSyncExternalStore(onLanguage, currentLanguage);
    // By the language alone: when React goes on with a component that has waited, it must ask for the same again.
    return language === "en" ? english : use(load(language));
  };
}

/** Loads a language's texts for all parts of the app that are loaded, so that it can be shown at once. */
export async function loadTexts(language: Language): Promise<void> {
  await Promise.all([...loaders].map((load) => load(language)));
}
