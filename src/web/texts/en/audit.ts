/** Texts of the audit log’s page. */
export const english = {
  title: "Audit log",
  outcome: "Outcome",
  allOutcomes: "All outcomes",
  choices: { allowed: "Allowed", refused: "Refused", failed: "Failed" },
  outcomes: { allowed: "allowed", refused: "refused", failed: "failed" },
  entries: "Entries",
  nothing: "Nothing matches this filter.",
  from: (address: string) => ` from ${address}`,
  actors: {
    key: "a key",
    user: (id: string) => `user ${id}`,
    browser: "a browser signed in by a link",
    command: "the server, or a command on it",
    nobody: "unknown",
  },
};
/** See `english`. */
export type AuditTexts = typeof english;
