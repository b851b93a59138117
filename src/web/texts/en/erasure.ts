/** Texts of the dialog that erases an organization. */
export const english = {
  title: (name: string) => `Erase ${name} for ever?`,
  goes: "What goes, and can’t be brought back:",
  going: (isOwn: boolean) => [
    "sessions with their conversations and changes; those at work are cancelled",
    "automations, webhooks, the ledger, figures and the audit log",
    "repositories’ settings, connections, secrets and registries",
    `people, their accounts and sign-ins, and all API keys: all people are signed out immediately${isOwn ? ", you too" : ""}`,
  ],
  stays: "What was pushed stays at the forges, as pull requests do; and so do backups and logs of the server.",
  name: "Its name",
  nameHint: (name: string) => `Write ${name}, to confirm it.`,
  verb: "Erase for ever",
  pending: "Erasing …",
  done: (name: string) => `${name} is being erased`,
};
/** See `english`. */
export type ErasureTexts = typeof english;
