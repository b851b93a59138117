import type { RepositoryAccess } from "../forge.ts";
import type { Project, ProtectedBranch } from "./project.ts";

/** The role from which on members may push (https://docs.gitlab.com/api/members/#roles). */
export const developer = 30;

/**
 * The rights on a project that GitLab reports.
 * @param protectedBranches null: GitLab does not show them to this token
 */
export function gitLabAccess(
  project: Project,
  protectedBranches: readonly ProtectedBranch[] | null,
  { branch, hasToken }: { readonly branch: string; readonly hasToken: boolean },
): RepositoryAccess {
  const level = levelIn(project);
  const rules = (protectedBranches ?? []).filter(({ name }) => isMatch(name, branch));
  const isShut = rules.length > 0 && rules.every((rule) => isShutTo(level, rule));
  const mayWrite = level === null ? (hasToken ? null : false) : level >= developer;
  return {
    readOnly: readOnlyWord(project),
    mayPush: isShut ? false : mayWrite,
    hasPullRequests: isOn(project.merge_requests_access_level, level),
    mayChangeWorkflows: null,
    mayFork: !hasToken || isOn(project.forking_access_level, level) === false ? false : null,
    rules: rules.map(({ name }) => (name === branch ? "a protected branch" : `branches protected as ${name}`)),
  };
}

/**
 * The role of the token's user; null if the project does not say, as to an administrator, or to a member of a group that it was
 * shared with.
 */
function levelIn({ permissions }: Project): number | null {
  const levels = [permissions?.project_access?.access_level, permissions?.group_access?.access_level];
  const known = levels.filter((level) => level !== undefined);
  return known.length === 0 ? null : Math.max(...known);
}

function readOnlyWord(project: Project): string | null {
  if (project.archived === true) return "archived";
  if ((project.marked_for_deletion_on ?? null) !== null) return "marked for deletion";
  return project.repository_access_level === "disabled" ? "without a repository" : null;
}

/** Whether a part of the project is there for the token's user: `private` is for members. */
function isOn(access: Project["merge_requests_access_level"], level: number | null): boolean | null {
  if (access === undefined || (access === "private" && level === null)) return null;
  return access !== "disabled";
}

/** A `*` stands for any characters, slashes too (https://docs.gitlab.com/user/project/repository/branches/protected/). */
function isMatch(pattern: string, branch: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  if (others.length === 0) return pattern === branch;
  const last = others.pop() ?? "";
  if (branch.length < first.length + last.length || !branch.startsWith(first) || !branch.endsWith(last)) return false;
  let at = first.length;
  for (const part of others) {
    const found = branch.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= branch.length - last.length;
}

/**
 * Whether the rule forbids this role to push. False if it may name the user or a group of theirs, or if the role is not
 * known.
 */
function isShutTo(level: number | null, { push_access_levels: allowed }: ProtectedBranch): boolean {
  if (allowed === undefined) return false;
  return allowed.every(({ access_level: from, user_id: user, group_id: group, deploy_key_id: key }) => {
    // A key is for ssh.
    if ((key ?? null) !== null) return true;
    if ((user ?? null) !== null || (group ?? null) !== null || from === null) return false;
    return from === 0 || (level !== null && level < from);
  });
}
