import type { SecretTexts } from "../en/secrets.ts";

const german: SecretTexts = {
  phases: { setup: "Setup", agent: "Agent" },
  and: "und",
  add: "Geheimnis hinzufügen",
  name: "Name",
  nameHint: "Der Umgebungsvariable.",
  value: "Wert",
  newValue: "Neuer Wert",
  newValueHint: "Leer, um den jetzigen zu behalten.",
  seenBy: "Wer es bekommt",
  seenByHint: "Was ein Agent bekommt, kann er an jeden Host senden, den er erreicht.",
  change: "Ändern",
  changeOf: (name) => `${name} ändern`,
  save: "Speichern",
  saving: "Wird gespeichert …",
};
export default german;
