import type { ForgeAccount, ForgeEvent } from "../../domain/automations/forge-event.ts";
import { accountOf, branchOf, longest, mergedAs, most } from "./event.ts";
import { choice, identifier, integer, list, present, required, text, type Untrusted } from "./payload.ts";

/** A person, a group or a service. */
export interface Identity {
  id?: unknown;
  displayName: unknown;
  uniqueName?: unknown;
}
/** A repository of git. */
export interface Repository {
  id: unknown;
  name: unknown;
  remoteUrl?: unknown;
  /** Of a build's repository the same; of others the address for programs. */
  url?: unknown;
  defaultBranch?: unknown;
  project?: { name: unknown };
}
/** A pull request, as resource of its own events and beside its comments. */
export interface PullRequest {
  pullRequestId: unknown;
  title: unknown;
  description?: unknown;
  status: unknown;
  isDraft?: unknown;
  closedDate?: unknown;
  createdBy: Identity;
  sourceRefName: unknown;
  targetRefName: unknown;
  lastMergeSourceCommit?: { commitId: unknown };
  /** Of an open one: a merge that the forge made to try it. */
  lastMergeCommit?: { commitId: unknown };
  repository: Repository;
  forkSource?: { repository?: Repository };
  reviewers?: (Identity & { vote?: unknown })[];
  labels?: { id?: unknown; name: unknown; active?: unknown }[];
}

/** Identities that programs have: build services, service principals and Azure DevOps itself. */
const serviceName = /^(?:Build\\|AgentPool\\|ServiceIdentity\\|LOCAL AUTHORITY\\)|^[0-9a-f-]{36}(?:@|$)/iu;

/** An account: its unique name, which is mostly an address of e-mail, is the login. */
export function account(given: Untrusted<Identity>): ForgeAccount | null {
  const name = text(given?.uniqueName, longest.name);
  const shown = text(given?.displayName, longest.name);
  const isBot =
    (name !== null && serviceName.test(name)) ||
    / Build Service \(|^(?:Microsoft\.VisualStudio\.Services\.TFS|Azure Pipelines|Azure Boards|GitHub)$/u.test(
      shown ?? "",
    );
  return accountOf(identifier(given?.id), name === null || name === "" ? shown : name, isBot);
}

/** A repository, with the address by which it is cloned; null if there is none. */
export function repository(given: Untrusted<Repository>): ForgeEvent["repository"] {
  const url = text(given?.remoteUrl ?? given?.url, longest.url);
  if (url === null || !/\/_git\/[^/]+$/u.test(url)) return null;
  const project = text(given?.project?.name, longest.name);
  const name = text(given?.name, longest.name) ?? "";
  return {
    // An organization's name may precede the host.
    url: url.replace(/^(https?:\/\/)[^/@]*@/u, "$1"),
    fullName: project === null ? name : `${project}/${name}`,
    defaultBranch: branchOf(given?.defaultBranch),
  };
}

/** A pull request. @throws InvalidInputError if it has no number or repository */
export function pullRequest(given: Untrusted<PullRequest>): NonNullable<ForgeEvent["pullRequest"]> {
  const number = required(integer(given?.pullRequestId), "resource.pullRequestId");
  const into = required(repository(given?.repository), "resource.repository.remoteUrl");
  const branch = branchOf(given?.sourceRefName);
  const sha = text(given?.lastMergeSourceCommit?.commitId, longest.name);
  const from = given?.forkSource == null ? into : repository(given.forkSource.repository);
  return {
    number,
    title: text(given?.title, longest.title) ?? "",
    body: text(given?.description, longest.body) ?? "",
    url: `${into.url}/pullrequest/${number}`,
    state: choice(given?.status, { completed: "merged", abandoned: "closed" } as const) ?? "open",
    draft: given?.isDraft === true,
    head: branch === null || sha === null ? null : { branch, sha, repositoryUrl: from?.url ?? null },
    target: branchOf(given?.targetRefName),
    labels: labels(given).map(({ label }) => label),
    author: account(given?.createdBy),
    ...(given?.status === "completed" && mergedAs(given.lastMergeCommit?.commitId)),
  };
}

/** The labels of a pull request that were not taken off again. */
export function labels(given: Untrusted<PullRequest>): { key: string; label: string }[] {
  return list(given?.labels, most.labels).flatMap((each) => {
    const label = text(each?.name, longest.name);
    return label === null || each?.active === false ? [] : [{ key: identifier(each?.id) ?? label, label }];
  });
}

/** Who is asked for a review, with the vote. */
export function reviewers(
  given: Untrusted<PullRequest>,
): { account: ForgeAccount; displayName: string; vote: number }[] {
  return present(
    list(given?.reviewers, most.accounts).map((each) => {
      const who = account(each);
      const displayName = text(each?.displayName, longest.name) ?? "";
      return who === null ? null : { account: who, displayName, vote: integer(each?.vote) ?? 0 };
    }),
  );
}
