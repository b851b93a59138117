import type { RepositoryCall } from "../forge.ts";
import type { PullRequestAddition } from "../../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { addEach, expectStatus, requireTaken, wordsIfRefused } from "../feedback/feedback.ts";
import { requestReviewers } from "../github-form.ts";
import { refusedBy } from "../http/refusal.ts";

/** Fields used of a label (issueAddLabel), and of a pull request (repoGetPullRequest). */
interface Label {
  readonly name?: string;
}
interface PullRequest {
  readonly assignees?: readonly { readonly login?: string }[] | null;
}

/** Labels, reviewers and assignees on Gitea and Forgejo. */
export async function addOnGitea(
  { host, call }: { readonly host: string; readonly call: RepositoryCall },
  address: RepositoryAddress,
  number: number,
  addition: PullRequestAddition,
  signal: AbortSignal,
): Promise<void> {
  const { field, names } = addition;
  const pull = `/pulls/${number}`;
  if (field === "labels") {
    const answer = await call(address, "POST", `/issues/${number}/labels`, signal, { body: { labels: names } });
    expectStatus(host, answer, [200], field);
    // Gitea silently drops labels that the repository does not have.
    const set = new Set((answer.body as readonly Label[]).map(({ name = "" }) => name.toLowerCase()));
    const left = names.filter((name) => !set.has(name.toLowerCase()));
    requireTaken(
      host,
      field,
      left.map((name) => [name, "left out without a word: the repository has no such label"]),
    );
    return;
  }
  if (field === "reviewers") {
    await requestReviewers({ host, call }, address, number, addition, signal);
    return;
  }
  const read = await call(address, "GET", pull, signal);
  if (read.status !== 200) throw refusedBy(host, read, field);
  // An assignee who is not sent is removed.
  const assigned = ((read.body as PullRequest).assignees ?? []).flatMap(({ login }) => login ?? []);
  await addEach(host, addition, async (name) => {
    if (assigned.some((login) => login.toLowerCase() === name.toLowerCase())) return null;
    const answer = await call(address, "PATCH", pull, signal, { body: { assignees: [...assigned, name] } });
    const words = wordsIfRefused(host, answer, [201], field);
    if (words === null) assigned.push(name);
    return words;
  });
}
