import { readStored, writeStored } from "../stored.ts";

/** How this browser shows the web app. */
export interface Preferences {
  readonly theme: "system" | "light" | "dark";
  readonly contrast: "system" | "normal" | "more";
  readonly motion: "system" | "reduced";
  /** Whether keys of one letter do something (WCAG 2.2, 2.1.4). */
  readonly letters: boolean;
}

/** The values of each choice. */
export const choices: { readonly [Name in "theme" | "contrast" | "motion"]: readonly Preferences[Name][] } = {
  theme: ["system", "light", "dark"],
  contrast: ["system", "normal", "more"],
  motion: ["system", "reduced"],
};

const listeners = new Set<() => void>();
let preferences: Preferences = {
  theme: oneOf("theme"),
  contrast: oneOf("contrast"),
  motion: oneOf("motion"),
  letters: readStored("letters") !== "off",
};

function oneOf<Name extends keyof typeof choices>(name: Name): Preferences[Name] {
  const stored = readStored(name);
  const values: readonly Preferences[Name][] = choices[name];
  return values.find((value) => value === stored) ?? "system";
}

/** The preferences as they are now; the same object until one changes. */
export function currentPreferences(): Preferences {
  return preferences;
}

/** Calls a function after each change. @returns a function that ends this */
export function onPreferences(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Changes preferences, shows them, and remembers them. */
export function changePreferences(changes: Partial<Preferences>): void {
  preferences = { ...preferences, ...changes };
  for (const name of ["theme", "contrast", "motion"] as const) {
    writeStored(name, preferences[name] === "system" ? null : preferences[name]);
  }
  writeStored("letters", preferences.letters ? null : "off");
  showPreferences();
  for (const listener of listeners) listener();
}

/**
 * Shows the preferences by attributes of the document, which the styles read; `followSystem` has it follow the system's. Colours
 * follow the system by themselves.
 */
export function showPreferences(): void {
  const { dataset } = document.documentElement;
  const { theme, contrast, motion } = preferences;
  if (theme === "system") delete dataset["theme"];
  else dataset["theme"] = theme;
  dataset["contrast"] = contrast === "system" && matchMedia(moreContrast).matches ? "more" : contrast;
  dataset["motion"] = motion === "system" && matchMedia(lessMotion).matches ? "reduced" : motion;
}

const moreContrast = "(prefers-contrast: more)";
const lessMotion = "(prefers-reduced-motion: reduce)";

/** Shows the preferences, now and whenever the system's change. */
export function followSystem(): void {
  showPreferences();
  for (const query of [moreContrast, lessMotion]) matchMedia(query).addEventListener("change", showPreferences);
}
