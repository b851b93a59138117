import type { MoreOptionsTexts } from "../en/more-options.ts";

const german: MoreOptionsTexts = {
  branchName: "Branch der Arbeit",
  branchNameHint: "Leer: Einer wird nach der Session benannt.",
  labels: "Labels der Session",
  noLabels: "Keine",
  findLabel: "Suchen, oder ein neues schreiben",
  addLabel: (label) => `${label} hinzufügen`,
  chosenLabel: "gewählt",
  repositories: "Weitere Repositories",
  repositoriesHint: "Ihre URLs, eine je Zeile. Der Ziel-Branch gilt in jedem.",
  together: "Pull-Requests nur, wenn jedes Repository die Arbeit annahm",
};
export default german;
