import type { RepositoryAccess } from "../forge.ts";

/** Fields used of a repository (https://developer.atlassian.com/cloud/bitbucket/rest/api-group-repositories/). */
export interface Repository {
  readonly full_name: string;
  readonly fork_policy?: "allow_forks" | "no_public_forks" | "no_forks";
  readonly parent?: { readonly full_name?: string } | null;
}

/** A user's rights on a repository: the fields used of a `repository_permission`. */
export interface RepositoryPermission {
  readonly permission?: string;
  readonly user?: { readonly uuid?: string; readonly account_id?: string };
  readonly repository?: { readonly full_name?: string };
}

/**
 * The rights on a repository that Bitbucket Cloud reports. Each has pull requests, and none can be archived.
 * @param permission the token's user's; null: Bitbucket does not report it, as for access tokens, which have no user
 */
export function bitbucketAccess(
  { fork_policy: policy }: Repository,
  permission: string | null,
  { hasToken, isAccount }: { readonly hasToken: boolean; readonly isAccount: boolean },
): RepositoryAccess {
  const mayPush = permission === null ? null : ["write", "admin"].includes(permission);
  return {
    readOnly: null,
    mayPush: hasToken ? mayPush : false,
    hasPullRequests: true,
    mayChangeWorkflows: null,
    mayFork: !isAccount || policy === "no_forks" ? false : null,
    // Only administrators of the repository can read its branch restrictions.
    rules: [],
  };
}
