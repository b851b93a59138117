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
} from "./feedback.ts";
import { refusedBy } from "./refusal.ts";

/** Fields used of a person's rights. */
interface Permission {
  readonly permission?: string;
  readonly user?: { readonly id?: number } | null;
}

/** Rights with which a person may push. Only Gitea has `owner`. */
const writing = new Set(["owner", "admin", "write"]);

/**
 * The answers that Gitea's API takes in the form of GitHub's: reactions, commit statuses, logs of workflows, rights of people
 * (https://docs.github.com/rest, https://docs.gitea.com/api).
 * @param api.pathOf of what gets a reaction
 * @param api.longestDescription most characters of a status's description
 */
export function feedbackInGitHubForm(api: {
  readonly host: string;
  readonly call: RepositoryCall;
  readonly readLog: LogReader;
  readonly pathOf: (target: ReactionTarget) => string;
  readonly longestDescription: number;
}): Pick<Feedback, "react" | "setStatus" | "readLogEnd" | "failedJobs" | "mayWrite"> {
  const { host, call, readLog, pathOf, longestDescription } = api;
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
    async failedJobs(address, { kind, id }, signal) {
      // A run that Gitea told of by a job's status is known by its address, which has another number than the API.
      if (kind !== "workflow" || !/^\d+$/u.test(id)) return [];
      const path = `/actions/runs/${encodeURIComponent(id)}/jobs?per_page=100`;
      const answer = await call(address, "GET", path, signal);
      return answer.status === 200 ? failedIn((answer.body as { readonly jobs?: readonly RunJob[] } | null)?.jobs) : [];
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
 * Requests each reviewer by itself, so that one who is refused holds back no other: a person by the login, a team by
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
