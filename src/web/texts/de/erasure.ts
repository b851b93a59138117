import type { ErasureTexts } from "../en/erasure.ts";

/** Texts of the dialog that erases an organization. */
const german: ErasureTexts = {
  title: (name) => `${name} für immer löschen?`,
  goes: "Das geht, und nichts bringt es zurück:",
  going: (isOwn) => [
    "Sessions mit ihren Unterhaltungen und Änderungen; die in Arbeit werden abgebrochen",
    "Automationen, Webhooks, das Journal, Zahlen und das Protokoll",
    "Einstellungen von Repositories, Verbindungen, Geheimnisse und Registries",
    `Personen, ihre Konten und Anmeldungen und alle API-Schlüssel: Alle werden sofort abgemeldet${isOwn ? ", auch du" : ""}`,
  ],
  stays: "Was gepusht wurde, bleibt bei den Forges, auch die Pull-Requests; ebenso Backups und Logs des Servers.",
  name: "Ihr Name",
  nameHint: (name) => `Schreib zur Bestätigung ${name}.`,
  verb: "Für immer löschen",
  pending: "Wird gelöscht …",
  done: (name) => `${name} wird gelöscht`,
};
export default german;
