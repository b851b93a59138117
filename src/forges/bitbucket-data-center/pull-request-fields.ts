import type { RepositoryCall } from "../forge.ts";
import type { PullRequestAddition } from "../../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { addEach, hasNone, wordsIfRefused } from "../feedback/feedback.ts";
import { refusedBy } from "../http/refusal.ts";
import { errorsIn, type PullRequest } from "./shapes.ts";

/** How often one is added that others change meanwhile. */
const attempts = 3;

/** Reviewers, by the names of their accounts. Data Center has no labels and no assignees of pull requests. */
export async function addOnDataCenter(
  { host, call }: { readonly host: string; readonly call: RepositoryCall },
  address: RepositoryAddress,
  number: number,
  addition: PullRequestAddition,
  signal: AbortSignal,
): Promise<void> {
  const { field } = addition;
  if (field !== "reviewers") throw hasNone(host, field);
  const path = `/pull-requests/${number}`;
  await addEach(host, addition, async (name) => {
    for (let attempt = 1; ; attempt += 1) {
      const read = await call(address, "GET", path, signal);
      if (read.status !== 200) throw refusedBy(host, read, field);
      const { version, title, description, draft, reviewers = [] } = read.body as PullRequest;
      if (reviewers.some(({ user }) => user.name?.toLowerCase() === name.toLowerCase())) return null;
      // A reviewer who is not sent is removed.
      const known = reviewers.map(({ user }) => ({ user: { name: user.name } }));
      const more = { ...(description != null && { description }), ...(draft !== undefined && { draft }) };
      const body = { version, title, ...more, reviewers: [...known, { user: { name } }] };
      const answer = await call(address, "PUT", path, signal, { body });
      const isOutdated = errorsIn(answer.body).some(({ exceptionName }) =>
        String(exceptionName).endsWith("PullRequestOutOfDateException"),
      );
      if (answer.status === 409 && isOutdated && attempt < attempts) continue;
      return wordsIfRefused(host, answer, [200], field);
    }
  });
}
