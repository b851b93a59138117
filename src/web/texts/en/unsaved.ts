/** Texts of the question before what is not saved is lost. */
export const english = {
  question: "Leave without saving?",
  about: "What you changed on this page is lost.",
  leave: "Leave",
};
/** See `english`. */
export type UnsavedTexts = typeof english;
