import { z } from "zod";
import { text } from "../fields/text.ts";

/** Most names of one kind, and most characters of one: GitLab's labels have so many. */
const mostNames = 20;
const longestName = 255;

const name = text(longestName).refine(
  (value) => value === value.trim() && !/\p{Cc}/u.test(value),
  "must be a name as the forge has it: without line breaks, and without spaces around it",
);
const names = z.array(name).max(mostNames, `must have at most ${mostNames} names`);

/** How the pull requests of a session are opened. What a forge does not have is listed at the session, and changes nothing else. */
export const pullRequestSettingsSchema = z.strictObject({
  draft: z.boolean().default(false).meta({ description: "Whether they are opened as drafts." }),
  labels: names.default([]).meta({ description: "Labels that they get." }),
  reviewers: names.default([]).meta({
    description:
      "Who is asked for a review, by the forge's name; `<organization>/<team>` for a team where it has some.",
  }),
  assignees: names.default([]).meta({ description: "Who is assigned, by the forge's name." }),
});
/** See `pullRequestSettingsSchema`. */
export type PullRequestSettings = z.infer<typeof pullRequestSettingsSchema>;

/** The fields that are set on a pull request once it is open. */
export const pullRequestFields = ["labels", "reviewers", "assignees"] as const;
/** See `pullRequestFields`. */
export type PullRequestField = (typeof pullRequestFields)[number];

/** An addition to a pull request. */
export interface PullRequestAddition {
  readonly field: PullRequestField;
  readonly names: readonly string[];
}
