import { createHash } from "node:crypto";
import { tokenUser, type ForgeState, type Place } from "./state.ts";

/**
 * The places of the test forge's repositories on Azure DevOps. One of the owner `acme` is `acme/shop/_git/shop`, in a
 * project of its own name; one of `acme/platform` is `acme/platform/_git/shop`. A fork is in the project of its
 * upstream, as `shop.tester`.
 */
export interface AzureNames {
  readonly collection: string;
  readonly project: string;
  readonly repository: string;
}

/** An id as Azure DevOps gives one, the same for the same name. */
export function guidOf(name: string): string {
  const hex = createHash("sha256").update(name.toLowerCase()).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}

export function azureNamesOf(
  state: Pick<ForgeState, "facts">,
  { owner, name }: Pick<Place, "owner" | "name">,
): AzureNames {
  const upstream = state.facts.get(`${owner}/${name}`)?.forkOf;
  const [collection = "", project = name] = (upstream ?? owner).split("/");
  return { collection, project, repository: upstream === undefined ? name : `${name}.${owner}` };
}

/** The place of a repository, by its names or ids; null: there is none. */
export function azurePlaceOf(state: ForgeState, wanted: AzureNames): Place | null {
  const same = (one: string, name: string): boolean => one.toLowerCase() === name.toLowerCase();
  for (const key of state.pulls.keys()) {
    const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(key) ?? [];
    const names = azureNamesOf(state, { owner, name });
    const isProject = same(names.project, wanted.project) || projectIdOf(names) === wanted.project;
    const isRepository =
      same(names.repository, wanted.repository) || repositoryIdOf({ owner, name }) === wanted.repository;
    if (same(names.collection, wanted.collection) && isProject && isRepository)
      return { webUrl: state.url, owner, name };
  }
  return null;
}

export function repositoryIdOf({ owner, name }: Pick<Place, "owner" | "name">): string {
  return guidOf(`repository ${owner}/${name}`);
}

export function projectIdOf({ collection, project }: Pick<AzureNames, "collection" | "project">): string {
  return guidOf(`project ${collection}/${project}`);
}

/** What a path of the API is about. */
export function azurePathIn(pathname: string): {
  readonly names: AzureNames | null;
  readonly collection: string;
  readonly project: string | null;
  readonly path: string;
} {
  const [, before = "", path = ""] = /^\/(.*?)\/?_apis\/(.*)$/u.exec(pathname) ?? [];
  const [collection = "", project = null] = before.split("/");
  const [, repository, below = ""] = /^git\/repositories\/([^/]+)(.*)$/u.exec(path) ?? [];
  if (repository === undefined || project === null) return { names: null, collection, project, path };
  return { names: { collection, project, repository }, collection, project, path: below };
}

/** The path at which git finds a repository: below `…/_git/`, perhaps without the project. */
export function azureGitPlace(state: ForgeState, owner: string, name: string): Place | null {
  const [, collection = "", project = name] = /^([^/]+)(?:\/([^/]+))?\/_git$/u.exec(owner) ?? [];
  return collection === "" ? null : azurePlaceOf(state, { collection, project, repository: name });
}

/** The one fork that there can be. */
export const forkName = (name: string): string => `${name}.${tokenUser}`;
