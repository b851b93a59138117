/** Texts of how pull requests are opened, in the forms of sessions and automations. */
export const english = {
  title: "How pull requests are opened",
  draft: "As drafts",
  labels: "Their labels",
  reviewers: "Reviewers",
  assignees: "Assignees",
  hints: {
    labels: "One on each line.",
    reviewers: "Their names at the forge, one on each line; organization/team for a team.",
    assignees: "Their names at the forge, one on each line.",
  },
};
/** See `english`. */
export type PullRequestTexts = typeof english;
