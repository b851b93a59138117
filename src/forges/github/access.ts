import type { components } from "@octokit/openapi-types";
import type { RepositoryAccess } from "../forge.ts";
import type { ForgeAnswer } from "../http/http.ts";

/** Permissions of a GitHub App's token, by name. */
export type InstallationPermissions = Readonly<Record<string, string | undefined>>;

/** Fields used of the repository (https://docs.github.com/rest/repos/repos#get-a-repository). */
type Repository = Partial<
  Pick<
    components["schemas"]["full-repository"],
    "archived" | "disabled" | "private" | "permissions" | "has_pull_requests" | "allow_forking"
  >
>;

/** Fields used of a rule (https://docs.github.com/rest/repos/rules#get-rules-for-a-branch). */
interface Rule {
  readonly type: string;
  readonly parameters?: { readonly operator?: string; readonly pattern?: string };
}

/** Rules that may refuse a push to a session's branch; the others are about its deletion, history and merge. */
const rulesOfPushes: ReadonlySet<string> = new Set([
  "creation",
  "update",
  "pull_request",
  "required_signatures",
  "required_status_checks",
  "branch_name_pattern",
  "commit_message_pattern",
  "commit_author_email_pattern",
  "committer_email_pattern",
  "file_path_restriction",
  "file_extension_restriction",
  "max_file_path_length",
  "max_file_size",
]);

/**
 * The rights on a repository that GitHub reports.
 * @param rules the answer on the rules of the work branch, which not every server and plan has
 * @param granted the permissions of the App's token; null: a token is used
 */
export function gitHubAccess(
  { headers, body }: Pick<ForgeAnswer, "headers" | "body">,
  rules: Pick<ForgeAnswer, "status" | "body">,
  { granted, token }: { readonly granted: InstallationPermissions | null; readonly token: string | null },
): RepositoryAccess {
  const repository = (body ?? {}) as Repository;
  const scopes = granted === null ? scopesIn(headers) : null;
  return {
    readOnly: repository.archived === true ? "archived" : repository.disabled === true ? "disabled" : null,
    mayPush: granted === null ? mayPush(repository, scopes, token) : granted["contents"] === "write",
    hasPullRequests: repository.has_pull_requests ?? null,
    ...(granted !== null && { mayOpenPullRequests: granted["pull_requests"] === "write" }),
    mayChangeWorkflows: granted === null ? (scopes?.has("workflow") ?? null) : granted["workflows"] === "write",
    // An App has no account that could have a fork.
    mayFork: granted === null && token !== null ? (repository.allow_forking ?? null) : false,
    rules: rules.status === 200 && Array.isArray(rules.body) ? wordsOfRules(rules.body as readonly Rule[]) : [],
  };
}

/** Scopes of a classic token; null: it has none, as a fine-grained one. */
function scopesIn(headers: Headers): ReadonlySet<string> | null {
  const scopes = (headers.get("x-oauth-scopes") ?? "")
    .split(",")
    .map((scope) => scope.trim())
    .filter((scope) => scope !== "");
  return scopes.length === 0 ? null : new Set(scopes);
}

/** A classic token's `permissions` are those of its user: the scope has to allow it too. */
function mayPush(
  { permissions, private: isPrivate }: Repository,
  scopes: ReadonlySet<string> | null,
  token: string | null,
): boolean | null {
  // For an App's token, which is what an Action has too, GitHub says false of each.
  if (permissions === undefined || token?.startsWith("ghs_") === true) return null;
  const isInScope = scopes === null || scopes.has("repo") || (isPrivate === false && scopes.has("public_repo"));
  return permissions.push && isInScope;
}

function wordsOfRules(rules: readonly Rule[]): string[] {
  const words = rules
    .filter(({ type }) => rulesOfPushes.has(type))
    .map(({ type, parameters: { operator, pattern } = {} }) =>
      pattern === undefined ? type : `${type} (${operator ?? "matches"} ${pattern})`,
    );
  return [...new Set(words)].slice(0, 10);
}
