import type { PullRequestField, PullRequestSettings } from "../../../domain/repositories/pull-request-settings.ts";
import { linesOf } from "../lines.ts";

/** The fields of a pull request with names. */
export const namedFields = ["labels", "reviewers", "assignees"] as const satisfies readonly PullRequestField[];

/** A form's values for how pull requests are opened; names are one on each line, since some have commas. */
export type PullRequestValues = Readonly<Record<PullRequestField, string>> & { readonly draft: boolean };

/** The initial values of a form: the default pull requests. */
export const usualPullRequest: PullRequestValues = { draft: false, labels: "", reviewers: "", assignees: "" };

/** Names of the API's fields: its messages begin with them. */
export const pullRequestErrors = namedFields.map((name) => `pullRequest.${name}` as const);

/** A form's values for existing settings. */
export function valuesOfSettings(settings: PullRequestSettings | null | undefined): PullRequestValues {
  if (settings == null) return usualPullRequest;
  const { draft, labels, reviewers, assignees } = settings;
  return {
    draft,
    labels: labels.join("\n"),
    reviewers: reviewers.join("\n"),
    assignees: assignees.join("\n"),
  };
}

/** The settings that a form says; null: as usual. */
export function settingsOfValues({
  draft,
  labels,
  reviewers,
  assignees,
}: PullRequestValues): PullRequestSettings | null {
  const settings = {
    draft,
    labels: linesOf(labels),
    reviewers: linesOf(reviewers),
    assignees: linesOf(assignees),
  };
  return draft || namedFields.some((name) => settings[name].length > 0) ? settings : null;
}
