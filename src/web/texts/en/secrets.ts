/** Texts of secrets, of an organization or of one repository. */
export const english = {
  phases: { setup: "setup", agent: "agent" },
  and: "and",
  add: "Add a secret",
  name: "Name",
  nameHint: "Of the environment variable.",
  value: "Value",
  newValue: "New value",
  newValueHint: "Empty to keep the one that it has.",
  seenBy: "Who gets it",
  seenByHint: "What an agent gets, it can send to any host that it may reach.",
  change: "Change",
  changeOf: (name: string) => `Change ${name}`,
  save: "Save",
  saving: "Saving …",
};
/** See `english`. */
export type SecretTexts = typeof english;
