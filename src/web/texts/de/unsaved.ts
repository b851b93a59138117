import type { UnsavedTexts } from "../en/unsaved.ts";

const german: UnsavedTexts = {
  question: "Verlassen, ohne zu speichern?",
  about: "Was du auf dieser Seite geändert hast, geht verloren.",
  leave: "Verlassen",
};
export default german;
