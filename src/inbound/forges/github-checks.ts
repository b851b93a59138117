import type { components } from "@octokit/openapi-webhooks-types";
import { checksOf, longest, most } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { choice, identifier, integer, list, present, required, text, type Untrusted } from "./payload.ts";

type Schemas = components["schemas"];
type Payload<Name extends keyof Schemas> = NonNullable<Untrusted<Schemas[Name]>>;

const pullRequestPath = "/pull/";

/** A check that was skipped or cancelled, or waits for a person, neither passed nor failed. */
function outcomeOf(conclusion: unknown): "failed" | "passed" | null {
  return choice(conclusion, {
    success: "passed",
    failure: "failed",
    timed_out: "failed",
    startup_failure: "failed",
  });
}

type PullRequests = Untrusted<{ number: number; base?: { repo?: { id: number } } }[]>;

/** Numbers of pull requests into the repository itself: a fork's branch may be that of pull requests elsewhere. */
function numbers(given: PullRequests, repositoryId: string | null): number[] {
  const here = list(given, most.pullRequests).filter((each) => {
    return !isElsewhere(each?.base?.repo?.id, repositoryId);
  });
  return present(here.map((each) => integer(each?.number)));
}

/** Whether it says that there is no repository any more, as of a fork that was deleted. */
const isGone = (from: unknown): boolean => from === null;

function isElsewhere(from: unknown, here: unknown): boolean {
  const [one, other] = [identifier(from), identifier(here)];
  return one !== null && other !== null && one !== other;
}

/** The checks of an App other than GitHub Actions ended: all that it has for a commit. */
export function checkSuite(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { action, check_suite: suite, repository: of } = payload as Payload<"webhook-check-suite-completed">;
  const outcome = outcomeOf(suite?.conclusion);
  if (action !== "completed" || outcome === null || suite?.app?.slug === "github-actions") return [];
  const sha = required(text(suite?.head_sha, longest.name), "check_suite.head_sha");
  const id = identifier(suite?.id);
  const checks = {
    kind: "check suite",
    id: id ?? "",
    name: text(suite?.app?.name, longest.name) ?? "",
    url: repositoryUrl === null ? null : `${repositoryUrl}/commit/${sha}/checks`,
    sha,
    branch: text(suite?.head_branch, longest.name),
    pullRequests: numbers(suite?.pull_requests, identifier(of?.id)),
  };
  // A suite that runs again keeps its id.
  const run = ["suite", id, sha, text(suite?.updated_at, longest.name) ?? ""];
  return [checksOf(repositoryUrl, outcome, checks, run, pullRequestPath)];
}

/** A run of a workflow of GitHub Actions ended, or ended again. */
export function workflowRun(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { action, workflow_run: given, repository: of } = payload as Payload<"webhook-workflow-run-completed">;
  const outcome = outcomeOf(given?.conclusion);
  if (action !== "completed" || outcome === null) return [];
  const id = identifier(given?.id);
  const checks = {
    kind: "workflow",
    id: id ?? "",
    name: text(given?.name, longest.name) ?? "",
    url: text(given?.html_url, longest.url),
    sha: required(text(given?.head_sha, longest.name), "workflow_run.head_sha"),
    // A fork's branch may have the name of one of ours.
    branch:
      isGone(given?.head_repository) || isElsewhere(given?.head_repository?.id, of?.id)
        ? null
        : text(given?.head_branch, longest.name),
    pullRequests: numbers(given?.pull_requests, identifier(of?.id)),
  };
  const run = ["workflow", id, integer(given?.run_attempt) ?? 1];
  return [checksOf(repositoryUrl, outcome, checks, run, pullRequestPath)];
}

/** A program set a commit's status, as those do that don't use checks. */
export function status(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { id, sha, state, context, target_url: url, branches, repository: of } = payload as Payload<"webhook-status">;
  const outcome = choice(state, { success: "passed", failure: "failed", error: "failed" } as const);
  if (outcome === null) return [];
  const commit = required(text(sha, longest.name), "sha");
  const checks = {
    kind: "status",
    id: identifier(id) ?? "",
    name: text(context, longest.name) ?? "",
    url: text(url, longest.url),
    sha: commit,
    branch: branchAt(commit, branches, text(of?.default_branch, longest.name)),
    pullRequests: [],
  };
  return [checksOf(repositoryUrl, outcome, checks, ["status", identifier(id)], pullRequestPath)];
}

type Branches = Payload<"webhook-status">["branches"];

/**
 * The branch that a status counts for. GitHub names all that have the commit, and each branch that was begun after a
 * commit of the default branch has that: those whose newest commit it is come first, and of several the default branch.
 * @returns null if several have it, and the default branch is none of them
 */
function branchAt(commit: string, branches: Branches, defaultBranch: string | null): string | null {
  const all = list(branches, most.branches);
  const ending = all.filter((branch) => branch?.commit?.sha === commit);
  const names = present((ending.length > 0 ? ending : all).map((branch) => text(branch?.name, longest.name)));
  if (defaultBranch !== null && names.includes(defaultBranch)) return defaultBranch;
  return names.length === 1 ? (names[0] ?? null) : null;
}
