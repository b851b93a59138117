import type { RepositoryCall } from "./forge.ts";
import type { ReactionTarget } from "../domain/answers/answer.ts";
import type { PullRequestAddition } from "../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import {
  addEach,
  expectStatus,
  failedIn,
  wordsIfRefused,
  type Feedback,
  type LogReader,
  type RunJob,
} from "./feedback/feedback.ts";
import { refusedBy } from "./http/refusal.ts";

/** Fields used of a person's rights. */
interface Permission {
  readonly permission?: string;
  readonly user?: { readonly id?: number } | null;
}

/** Fields used of a list of a run's jobs. */
interface JobList {
  readonly jobs?: readonly RunJob[] | null;
  readonly total_count?: number;
}

/** Most pages of a run's jobs that are read for one that failed: a matrix has up to 256. */
const mostPages = 6;

/** Rights with which a person may push. Only Gitea has `owner`. */
const writing = new Set(["owner", "admin", "write"]);

/**
 * The answers that Gitea's API takes in the form of GitHub's: reactions, commit statuses, logs of workflows, rights of people
 * (https://docs.github.com/rest, https://docs.gitea.com/api).
 * @param api.pathOf of what gets a reaction
 * @param api.longestDescription most characters of a status's description
 * @param api.pages how its list of a run's jobs is asked for a hundred of them, or for as many as it gives at once
 * @param api.runAt the id of a run of a workflow that events name by the path of its address; omitted: they name all by their ids
 */
export function feedbackInGitHubForm(api: {
  readonly host: string;
  readonly call: RepositoryCall;
  readonly readLog: LogReader;
  readonly pathOf: (target: ReactionTarget) => string;
  readonly longestDescription: number;
  readonly pages: string;
  readonly runAt?: (
    address: RepositoryAddress,
    run: { readonly path: string; readonly sha: string },
    signal: AbortSignal,
  ) => Promise<string | null>;
}): Pick<Feedback, "react" | "setStatus" | "readLogEnd" | "failedJobs" | "mayWrite"> {
  const { host, call, readLog, pathOf, longestDescription, pages, runAt } = api;
  return {
    async react(address, target, content, signal) {
      const answer = await call(address, "POST", `${pathOf(target)}/reactions`, signal, { body: { content } });
      // 200: it was there.
      expectStatus(host, answer, [200, 201], "reaction");
      return true;
    },
    async setStatus(address, sha, { state, name, description, url }, signal) {
      const body = { state, context: name, description: description.slice(0, longestDescription), target_url: url };
      const answer = await call(address, "POST", `/statuses/${encodeURIComponent(sha)}`, signal, { body });
      expectStatus(host, answer, [201], "commit status");
    },
    readLogEnd: (address, job, bytes, signal) =>
      readLog(address, `/actions/jobs/${encodeURIComponent(job)}/logs`, bytes, signal),
    async failedJobs(address, { kind, id, sha }, signal) {
      if (kind !== "workflow") return [];
      // A run that Gitea delivered as a job's status is known by its address, which has another number than the API.
      const run = /^\d+$/u.test(id) ? id : ((await runAt?.(address, { path: id, sha }, signal)) ?? null);
      if (run === null) return [];
      const path = `/actions/runs/${encodeURIComponent(run)}/jobs?${pages}`;
      let seen = 0;
      for (let page = 1; page <= mostPages; page += 1) {
        const answer = await call(address, "GET", `${path}&page=${page}`, signal);
        const { jobs, total_count: total = 0 } = ((answer.status === 200 ? answer.body : null) ?? {}) as JobList;
        const failed = failedIn(jobs);
        seen += jobs?.length ?? 0;
        if (failed.length > 0 || jobs == null || jobs.length === 0 || total <= seen) return failed;
      }
      return [];
    },
    async mayWrite(address, { id, login }, signal) {
      const path = `/collaborators/${encodeURIComponent(login)}/permission`;
      const answer = await call(address, "GET", path, signal);
      // On Gitea only who administers the repository may ask about others.
      if (answer.status === 403) return null;
      if (answer.status === 404) return false;
      if (answer.status !== 200) throw refusedBy(host, answer, "question for a person's rights");
      const { permission = "", user } = (answer.body ?? {}) as Permission;
      return String(user?.id) === id && writing.has(permission);
    },
  };
}

/**
 * Requests each reviewer separately, so that a refused one holds back no other: a person by the login, a team by
 * `<organization>/<team>`.
 * @throws SessionError with the names that the forge did not take, or if its refusal is about the token or the repository
 */
export async function requestReviewers(
  { host, call }: { readonly host: string; readonly call: RepositoryCall },
  address: RepositoryAddress,
  number: number,
  addition: PullRequestAddition,
  signal: AbortSignal,
): Promise<void> {
  const path = `/pulls/${number}/requested_reviewers`;
  await addEach(host, addition, async (name) => {
    const [, team] = /^[^/]+\/(.+)$/u.exec(name) ?? [];
    const body = team === undefined ? { reviewers: [name] } : { team_reviewers: [team] };
    const answer = await call(address, "POST", path, signal, { body });
    return wordsIfRefused(host, answer, [201], addition.field);
  });
}
