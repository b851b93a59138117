/** Texts of a link that shows a session, in the list of one session and in that of all. */
export const english = {
  made: "made",
  by: "by",
  ends: "ends",
  expired: "ended",
  revoked: "revoked",
  used: "used",
  unused: "not used yet",
  revoke: "Revoke",
  revokeQuestion: "Revoke the link?",
  revokeText: "It shows nothing from then on.",
};
/** See `english`. */
export type ShareTexts = typeof english;
