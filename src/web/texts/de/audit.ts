import type { AuditTexts } from "../en/audit.ts";

const german: AuditTexts = {
  title: "Protokoll",
  outcome: "Ausgang",
  allOutcomes: "Jeder Ausgang",
  choices: { allowed: "Erlaubt", refused: "Abgelehnt", failed: "Fehlgeschlagen" },
  outcomes: { allowed: "erlaubt", refused: "abgelehnt", failed: "fehlgeschlagen" },
  entries: "Einträge",
  nothing: "Nichts passt zu diesem Filter.",
  from: (address) => ` von ${address}`,
  actors: {
    key: "ein Schlüssel",
    user: (id) => `Benutzer ${id}`,
    browser: "ein Browser, mit einem Link angemeldet",
    command: "der Server oder ein Befehl auf ihm",
    nobody: "niemand Bekanntes",
  },
};
export default german;
