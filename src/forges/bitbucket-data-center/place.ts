import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { pathOn } from "../serves.ts";

/** The place of a repository on a server: in a project, or in the project `~user` of a person. */
export interface RepositoryPlace {
  readonly project: string;
  readonly slug: string;
}

/**
 * The place that an address is about: git's (`/scm/PROJECT/slug`), that of the pages (`/projects/PROJECT/repos/slug`,
 * `/users/name/repos/slug`), or ssh's (`PROJECT/slug`).
 */
export function repositoryPlaceOf(webUrl: string, address: RepositoryAddress): RepositoryPlace {
  const segments = pathOn(webUrl, address).split("/");
  const [kind = "", owner = "", repos, named] = segments;
  if (kind === "scm" && segments.length === 3) return { project: owner, slug: repos ?? "" };
  if (repos === "repos" && named !== undefined && (kind === "projects" || kind === "users"))
    return { project: kind === "users" ? `~${owner}` : owner, slug: named };
  return { project: segments.at(-2) ?? "", slug: segments.at(-1) ?? "" };
}

/** The path of a place below an API. */
export function apiPathOf({ project, slug }: RepositoryPlace): string {
  return `/projects/${encodeURIComponent(project)}/repos/${encodeURIComponent(slug)}`;
}

/** The address of a place's pages. */
export function pagesOf(webUrl: string, { project, slug }: RepositoryPlace): string {
  const home = project.startsWith("~") ? `users/${project.slice(1)}` : `projects/${project}`;
  return `${webUrl}/${home}/repos/${slug}`;
}

/** The address from which git fetches; null if the names are not of a repository. */
export function cloneAddressOf(webUrl: string, { project, slug }: RepositoryPlace): RepositoryAddress | null {
  const address = parseRepositoryUrl(`${webUrl}/scm/${project}/${slug}.git`);
  return isAddressProblem(address) ? null : address;
}

/** Whether two places are one: neither keys nor slugs differ by capitals. */
export function isSamePlace(one: RepositoryPlace, other: RepositoryPlace): boolean {
  return apiPathOf(one).toLowerCase() === apiPathOf(other).toLowerCase();
}

/** The path that git has on Bitbucket Data Center, of the page's (`projects/KEY/repos/slug`, `users/name/repos/slug`) and ssh's (`KEY/slug`). */
export function gitPathOf(path: string): string {
  const [, above = "", kind, owner = "", slug = ""] =
    /^(.*\/)?(projects|users)\/([^/]+)\/repos\/([^/]+)$/u.exec(path) ?? [];
  if (kind !== undefined) return `${above}scm/${kind === "users" ? "~" : ""}${owner}/${slug}`;
  return /^[^/]+\/[^/]+$/u.test(path) ? `scm/${path}` : path;
}
