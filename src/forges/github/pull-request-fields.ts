import type { RepositoryCall } from "../forge.ts";
import type { components } from "@octokit/openapi-types";
import type { PullRequestAddition } from "../../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { expectStatus, requireTaken } from "../feedback/feedback.ts";
import { requestReviewers } from "../github-form.ts";

type Issue = Pick<components["schemas"]["issue"], "assignees">;

/** A pull request is an issue for labels and assignees (https://docs.github.com/rest/issues/labels, https://docs.github.com/rest/pulls/review-requests). */
export async function addOnGitHub(
  { host, call }: { readonly host: string; readonly call: RepositoryCall },
  address: RepositoryAddress,
  number: number,
  addition: PullRequestAddition,
  signal: AbortSignal,
): Promise<void> {
  const { field, names } = addition;
  const send = (path: string, body: unknown) => call(address, "POST", path, signal, { body });
  if (field === "labels") {
    expectStatus(host, await send(`/issues/${number}/labels`, { labels: names }), [200], field);
    return;
  }
  if (field === "assignees") {
    const answer = await send(`/issues/${number}/assignees`, { assignees: names });
    expectStatus(host, answer, [201], field);
    // GitHub silently drops accounts that can't be assigned.
    const assigned = new Set((answer.body as Issue).assignees?.map(({ login }) => login.toLowerCase()));
    const left = names.filter((name) => !assigned.has(name.toLowerCase()));
    requireTaken(
      host,
      field,
      left.map((name) => [name, "left out without a word: it can't be assigned"]),
    );
    return;
  }
  await requestReviewers({ host, call }, address, number, addition, signal);
}
