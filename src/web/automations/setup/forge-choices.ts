import type { ForgeEventName } from "../../../domain/automations/forge-event.ts";
import type { ForgeKind } from "../../../domain/repositories/repository.ts";

/**
 * What to choose at a forge's webhook to have an event delivered, in the forge's own words; a missing kind can't
 * deliver it.
 */
export const forgeChoices: Readonly<Record<ForgeEventName, Readonly<Partial<Record<ForgeKind, string>>>>> = {
  "issue.opened": {
    github: "Issues",
    gitlab: "Issues events",
    gitea: "Issues",
    bitbucket: "Issue: Created, Updated",
    azure: "Work item created, updated",
  },
  "issue.labeled": {
    github: "Issues",
    gitlab: "Issues events",
    gitea: "Issue labeled",
    azure: "Work item created, updated (tags)",
  },
  "issue.assigned": {
    github: "Issues",
    gitlab: "Issues events",
    gitea: "Issue assigned",
    bitbucket: "Issue: Created, Updated",
    azure: "Work item created, updated",
  },
  "issue.commented": {
    github: "Issue comments",
    gitlab: "Comments",
    gitea: "Issue comment",
    bitbucket: "Issue: Comment created",
    azure: "Work item commented on",
  },
  "issue.closed": {
    github: "Issues",
    gitlab: "Issues events",
    gitea: "Issues",
    bitbucket: "Issue: Updated",
    azure: "Work item updated",
  },
  "pullRequest.opened": {
    github: "Pull requests",
    gitlab: "Merge request events",
    gitea: "Pull request",
    bitbucket: "Pull request: Created",
    bitbucketDataCenter: "Pull request: Opened, Modified",
    azure: "Pull request created, updated",
  },
  "pullRequest.updated": {
    github: "Pull requests",
    gitlab: "Merge request events",
    gitea: "Pull request synchronized",
    bitbucket: "Pull request: Updated",
    bitbucketDataCenter: "Pull request: Source branch updated",
    azure: "Pull request updated",
  },
  "pullRequest.labeled": {
    github: "Pull requests",
    gitlab: "Merge request events",
    gitea: "Pull request labeled",
    azure: "Pull request created, updated",
  },
  "pullRequest.reviewRequested": {
    github: "Pull requests",
    gitlab: "Merge request events",
    gitea: "Pull request review requested",
    bitbucket: "Pull request: Created, Updated",
    bitbucketDataCenter: "Pull request: Opened, Reviewers updated",
    azure: "Pull request created, updated",
  },
  "pullRequest.reviewSubmitted": {
    github: "Pull request reviews",
    gitlab: "Merge request events",
    gitea: "Pull request reviewed",
    bitbucket: "Pull request: Approved, Changes request created",
    bitbucketDataCenter: "Pull request: Approved, Needs work",
    azure: "Pull request updated",
  },
  "pullRequest.reviewDismissed": {
    github: "Pull request reviews",
    gitlab: "Merge request events",
    bitbucket: "Pull request: Unapproved, Changes request removed",
    bitbucketDataCenter: "Pull request: Unapproved",
    azure: "Pull request updated",
  },
  "pullRequest.commented": {
    github: "Issue comments, Pull request review comments",
    gitlab: "Comments",
    gitea: "Pull request comment",
    bitbucket: "Pull request: Comment created",
    bitbucketDataCenter: "Pull request: Comment added",
    azure: "Pull request commented on",
  },
  "pullRequest.merged": {
    github: "Pull requests",
    gitlab: "Merge request events",
    gitea: "Pull request",
    bitbucket: "Pull request: Merged",
    bitbucketDataCenter: "Pull request: Merged",
    azure: "Pull request updated",
  },
  "pullRequest.closed": {
    github: "Pull requests",
    gitlab: "Merge request events",
    gitea: "Pull request",
    bitbucket: "Pull request: Declined",
    bitbucketDataCenter: "Pull request: Declined, Deleted",
    azure: "Pull request updated",
  },
  push: {
    github: "Pushes",
    gitlab: "Push events",
    gitea: "Push, Delete",
    bitbucket: "Repository: Push",
    bitbucketDataCenter: "Repository: Push",
    azure: "Code pushed",
  },
  "checks.failed": {
    github: "Workflow runs, Check suites, Statuses",
    gitlab: "Pipeline events",
    gitea: "Workflow run, Status (Gitea); Action run (Forgejo)",
    bitbucket: "Build status created, updated",
    azure: "Build completed",
  },
  "checks.passed": {
    github: "Workflow runs, Check suites, Statuses",
    gitlab: "Pipeline events",
    gitea: "Workflow run, Status (Gitea); Action run (Forgejo)",
    bitbucket: "Build status created, updated",
    azure: "Build completed",
  },
  "release.published": { github: "Releases", gitlab: "Releases events", gitea: "Release" },
};

/** What to choose for several events, each once, and which of them the forge can't deliver. */
export function choicesFor(
  kind: ForgeKind,
  events: readonly string[],
): { readonly choose: readonly string[]; readonly untold: readonly string[] } {
  const known = events.filter((name): name is ForgeEventName => Object.hasOwn(forgeChoices, name));
  const choices = known.flatMap((name) => forgeChoices[name][kind] ?? []);
  return { choose: [...new Set(choices)], untold: known.filter((name) => forgeChoices[name][kind] === undefined) };
}
