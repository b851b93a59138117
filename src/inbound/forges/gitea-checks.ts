import { pathOfAddress } from "../../domain/repositories/path-of-address.ts";
import { checksOf, longest } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { choice, identifier, integer, required, text, type Untrusted } from "./payload.ts";

const pullRequestPath = "/pulls/";

/**
 * Gitea delivers a run of a workflow as `workflow_run` (since 1.25) and as the status of each of its jobs. All have the
 * address of the run, by which they are recognized as one.
 */
const addressOfRun = /^(?<run>.*\/actions\/runs\/\d+)(?:\/.*)?$/u;

type StatusPayload = NonNullable<
  Untrusted<{ id: unknown; sha: unknown; state: unknown; context: unknown; target_url: unknown }>
>;

/**
 * A commit's status was set. Those of workflows' jobs count only if they failed, as the run then fails: that one job passed does not
 * say that the run does.
 */
export function status(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { id, sha, state, context, target_url: target } = payload as StatusPayload;
  const outcome = choice(state, { success: "passed", failure: "failed", error: "failed" } as const);
  const url = text(target, longest.url);
  const run = url === null ? undefined : addressOfRun.exec(url)?.groups?.["run"];
  if (outcome === null || (run !== undefined && outcome === "passed")) return [];
  const commit = required(text(sha, longest.name), "sha");
  const checks = {
    kind: run === undefined ? "status" : "workflow",
    // The status has a number that is not the run's: another run's log would be read by it. It has only the run's
    // address.
    id: run === undefined ? (identifier(id) ?? "") : pathOfAddress(run),
    name: text(context, longest.name) ?? "",
    url,
    sha: commit,
    branch: null,
    pullRequests: [],
  };
  const key = run === undefined ? ["status", identifier(id)] : ["run", pathOfAddress(run)];
  return [checksOf(repositoryUrl, outcome, checks, key, pullRequestPath)];
}

type WorkflowRunPayload = NonNullable<
  Untrusted<{
    action: unknown;
    workflow?: { name: unknown };
    workflow_run: {
      id: unknown;
      html_url: unknown;
      display_title?: unknown;
      head_sha: unknown;
      head_branch: unknown;
      conclusion?: unknown;
      run_attempt?: unknown;
      head_repository?: { id: unknown };
    };
    repository?: { id: unknown };
    pull_request?: { number: unknown };
  }>
>;

/** A run of a workflow of Gitea ended, or ended again. */
export function workflowRun(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { action, workflow, workflow_run: given, pull_request: into, repository: of } = payload as WorkflowRunPayload;
  const outcome = choice(given?.conclusion, { success: "passed", failure: "failed", timed_out: "failed" } as const);
  if (action !== "completed" || outcome === null) return [];
  const url = text(given?.html_url, longest.url);
  const number = integer(into?.number);
  const id = identifier(given?.id);
  const [from, here] = [identifier(given?.head_repository?.id), identifier(of?.id)];
  const isFork = from !== null && here !== null && from !== here;
  const checks = {
    kind: "workflow",
    id: id ?? "",
    name: text(workflow?.name, longest.name) ?? text(given?.display_title, longest.name) ?? "",
    url,
    sha: required(text(given?.head_sha, longest.name), "workflow_run.head_sha"),
    // A fork's branch may have the name of one of ours.
    branch: isFork ? null : text(given?.head_branch, longest.name),
    pullRequests: number === null ? [] : [number],
  };
  const attempt = integer(given?.run_attempt) ?? 1;
  const run = ["run", url === null ? id : pathOfAddress(url), ...(attempt > 1 ? [attempt] : [])];
  return [checksOf(repositoryUrl, outcome, checks, run, pullRequestPath)];
}

type ActionRunPayload = NonNullable<
  Untrusted<{
    action: unknown;
    run: {
      id: unknown;
      title: unknown;
      workflow_id: unknown;
      prettyref: unknown;
      is_fork_pull_request?: unknown;
      commit_sha: unknown;
      html_url: unknown;
      stopped?: unknown;
    };
  }>
>;

/** A run of a workflow of Forgejo ended. The first success after a failure comes twice, as success and as recovery. */
export function actionRun(payload: object, repositoryUrl: string | null): ForgeHappening[] {
  const { action, run: given } = payload as ActionRunPayload;
  const outcome = choice(action, { success: "passed", recover: "passed", failure: "failed" } as const);
  if (outcome === null) return [];
  const url = text(given?.html_url, longest.url);
  const ref = text(given?.prettyref, longest.name);
  const number = ref === null ? undefined : /^#(?<number>\d{1,9})$/u.exec(ref)?.groups?.["number"];
  const id = identifier(given?.id);
  const checks = {
    kind: "workflow",
    id: id ?? "",
    name: text(given?.workflow_id, longest.name) ?? text(given?.title, longest.name) ?? "",
    url,
    sha: required(text(given?.commit_sha, longest.name), "run.commit_sha"),
    branch: number === undefined && given?.is_fork_pull_request !== true ? ref : null,
    pullRequests: number === undefined ? [] : [Number(number)],
  };
  // A run that is run again keeps its address.
  const run = ["run", url === null ? id : pathOfAddress(url), text(given?.stopped, longest.name) ?? ""];
  return [checksOf(repositoryUrl, outcome, checks, run, pullRequestPath)];
}
