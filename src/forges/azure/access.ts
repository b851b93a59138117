import type { RepositoryAccess } from "../forge.ts";
import type { Repository } from "./repository.ts";

/**
 * The namespace and the permissions of git repositories
 * (https://learn.microsoft.com/azure/devops/organizations/security/namespace-reference#git-repositories).
 */
export const gitNamespace = "2e9eb7ed-3c0a-47d4-87c1-0ffdd275fd87";
/** See `gitNamespace`. */
export const permissions = { contribute: 4, createBranch: 16, createRepository: 256 } as const;

/** A permission that is asked of what a token names. */
export interface Evaluation {
  readonly securityNamespaceId: string;
  readonly token: string;
  readonly permissions: number;
}

/**
 * The names of objects with their own permissions; a branch inherits those of its repository, and that those of its
 * project.
 */
export function projectToken({ project }: Pick<Repository, "project">): string {
  return `repoV2/${project.id}`;
}

/** See `projectToken`. */
export function repositoryToken(repository: Pick<Repository, "id" | "project">): string {
  return `${projectToken(repository)}/${repository.id}`;
}

/**
 * See `projectToken`. Each segment of a branch's name is written as the hexadecimal digits of its UTF-16
 * (https://devblogs.microsoft.com/devops/git-repo-tokens-for-the-security-service/).
 */
export function branchToken(repository: Pick<Repository, "id" | "project">, branch: string): string {
  const segments = branch.split("/").map((segment) => Buffer.from(segment, "utf16le").toString("hex"));
  return `${repositoryToken(repository)}/refs/heads/${segments.join("/")}`;
}

/**
 * The permissions to evaluate for the token's own user, in this order: to push to the branch, to make it, and to make a
 * fork.
 */
export function evaluationsFor(repository: Repository, branch: string): readonly Evaluation[] {
  const asked = [
    [branchToken(repository, branch), permissions.contribute],
    [repositoryToken(repository), permissions.createBranch],
    [projectToken(repository), permissions.createRepository],
  ] as const;
  return asked.map(([token, wanted]) => ({ securityNamespaceId: gitNamespace, token, permissions: wanted }));
}

/**
 * The rights on a repository that Azure DevOps reports. It has no switch for pull requests, and does not report branch
 * policies here.
 * @param values the answers to `evaluationsFor`; null: it does not report them
 */
export function azureAccess(
  { isDisabled }: Repository,
  values: readonly unknown[] | null,
  hasToken: boolean,
): RepositoryAccess {
  const [mayContribute, mayCreateBranch, mayCreateRepository] = (values ?? []).map((value) =>
    typeof value === "boolean" ? value : null,
  );
  return {
    readOnly: isDisabled === true ? "disabled" : null,
    // An account that may not make branches may push to an existing one.
    mayPush: !hasToken ? false : mayContribute === true && mayCreateBranch !== true ? null : (mayContribute ?? null),
    hasPullRequests: null,
    mayChangeWorkflows: null,
    mayFork: !hasToken ? false : (mayCreateRepository ?? null),
    rules: [],
  };
}
