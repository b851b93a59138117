import type { RepositoryCall } from "../forge.ts";
import type { PullRequestAddition } from "../../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { addEach, hasNone, wordsIfRefused } from "../feedback/feedback.ts";
import { refusedBy } from "../http/refusal.ts";

/** Fields used of a pull request (https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/). */
interface PullRequest {
  readonly title: string;
  readonly description?: string;
  readonly reviewers?: readonly { readonly uuid?: string; readonly account_id?: string }[];
}

/**
 * Reviewers, by the ids of their accounts: Bitbucket Cloud finds no account by name. It has no labels and no assignees.
 */
export async function addOnBitbucket(
  { host, call }: { readonly host: string; readonly call: RepositoryCall },
  address: RepositoryAddress,
  number: number,
  addition: PullRequestAddition,
  signal: AbortSignal,
): Promise<void> {
  const { field } = addition;
  if (field !== "reviewers") throw hasNone(host, field);
  const path = `/pullrequests/${number}`;
  const read = await call(address, "GET", path, signal);
  if (read.status !== 200) throw refusedBy(host, read, field);
  let { reviewers = [] } = read.body as PullRequest;
  const { title, description = "" } = read.body as PullRequest;
  await addEach(host, addition, async (name) => {
    const isUuid = /^\{[0-9a-f-]{36}\}$/iu.test(name);
    if (!isUuid && !/^(?:[0-9a-f]{24}|\d+:[\w-]+)$/iu.test(name))
      return "Bitbucket finds no account by name: give the account's UUID in braces, or its account id";
    const account = isUuid ? { uuid: name } : { account_id: name };
    if (reviewers.some((each) => each.uuid === name || each.account_id === name)) return null;
    // A reviewer who is not sent is removed, and a title is required.
    const known = reviewers.flatMap(({ uuid }) => (uuid === undefined ? [] : [{ uuid }]));
    const body = { title, description, reviewers: [...known, account] };
    const answer = await call(address, "PUT", path, signal, { body });
    const words = wordsIfRefused(host, answer, [200], field);
    if (words === null) reviewers = (answer.body as PullRequest).reviewers ?? [];
    return words;
  });
}
