/** Texts of what else can be said of a new session. */
export const english = {
  branchName: "Branch of the work",
  branchNameHint: "Empty: one is named after the session.",
  labels: "Labels of the session",
  noLabels: "None",
  findLabel: "Find one, or write a new one",
  addLabel: (label: string) => `Add ${label}`,
  chosenLabel: "chosen",
  repositories: "Further repositories",
  repositoriesHint: "Their URLs, one on each line. The target branch is that of each.",
  together: "Pull requests only if every repository took the work",
};
/** See `english`. */
export type MoreOptionsTexts = typeof english;
