import type { RepositoryCall } from "../forge.ts";
import type { PullRequestAddition } from "../../domain/repositories/pull-request-settings.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { expectStatus, requireTaken, type RefusedName } from "../feedback/feedback.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { refusedBy } from "../http/refusal.ts";

/** Fields used of a merge request (https://docs.gitlab.com/api/merge_requests/). */
interface People {
  readonly reviewers?: readonly { readonly id?: number }[] | null;
  readonly assignees?: readonly { readonly id?: number }[] | null;
}

/** GitLab's part of adding fields. */
interface Fields {
  readonly host: string;
  readonly call: RepositoryCall;
  /** Asks for the user with a name (https://docs.gitlab.com/api/users/#list-users). */
  readonly users: (name: string, signal: AbortSignal) => Promise<ForgeAnswer>;
}

const idFields = { reviewers: "reviewer_ids", assignees: "assignee_ids" } as const;

/** Labels, which GitLab makes if the project lacks them, and people by their ids. */
export async function addOnGitLab(
  { host, call, users }: Fields,
  address: RepositoryAddress,
  number: number,
  { field, names }: PullRequestAddition,
  signal: AbortSignal,
): Promise<void> {
  const path = `/merge_requests/${number}`;
  const change = (body: unknown) => call(address, "PUT", path, signal, { body });
  if (field === "labels") {
    expectStatus(host, await change({ add_labels: names.join(",") }), [200], field);
    return;
  }
  const refused: RefusedName[] = [];
  const wanted = new Map<string, number>();
  for (const name of names) {
    const answer = await users(name.replace(/^@/u, ""), signal);
    if (answer.status !== 200) throw refusedBy(host, answer, field);
    const [user] = answer.body as readonly { readonly id?: number }[];
    if (user?.id === undefined) refused.push([name, "there is no user with this name"]);
    else wanted.set(name, user.id);
  }
  const read = await call(address, "GET", path, signal);
  if (read.status !== 200) throw refusedBy(host, read, field);
  const before = idsIn(read.body, field);
  // An account that is not sent is removed.
  const ids = [...new Set([...before, ...wanted.values()])];
  if (ids.length > before.length) {
    const changed = await change({ [idFields[field]]: ids });
    expectStatus(host, changed, [200], field);
    const now = new Set(idsIn(changed.body, field));
    // Without a paid plan there is one; accounts that can't see the project are left out, too.
    for (const [name, id] of wanted) if (!now.has(id)) refused.push([name, "left out without a word"]);
  }
  requireTaken(host, field, refused);
}

function idsIn(body: unknown, field: keyof typeof idFields): number[] {
  return ((body as People | null)?.[field] ?? []).flatMap(({ id }) => id ?? []);
}
