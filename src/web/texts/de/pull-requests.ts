import type { PullRequestTexts } from "../en/pull-requests.ts";

const german: PullRequestTexts = {
  title: "Wie Pull-Requests geöffnet werden",
  draft: "Als Entwürfe",
  labels: "Ihre Labels",
  reviewers: "Reviewer",
  assignees: "Zugewiesene",
  hints: {
    labels: "Eines je Zeile.",
    reviewers: "Ihre Namen bei der Forge, einer je Zeile; Organisation/Team für ein Team.",
    assignees: "Ihre Namen bei der Forge, einer je Zeile.",
  },
};
export default german;
