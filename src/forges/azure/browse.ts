import { SessionError } from "../../domain/errors/errors.ts";
import {
  narrowed,
  queryOf,
  whileChoosing,
  type ForgeBrowser,
  type FoundItems,
  type FoundRepository,
} from "../browse.ts";
import { refusedBy } from "../http/refusal.ts";
import type { AzureApi } from "./api.ts";

interface Repository {
  readonly name: string;
  readonly webUrl?: string;
  readonly remoteUrl: string;
  readonly defaultBranch?: string;
  readonly isDisabled?: boolean;
  readonly project: { readonly name: string };
}

/** Most branches and files that one question is answered with. */
const branchesAtMost = 200;

/**
 * Looks through Azure DevOps (https://learn.microsoft.com/rest/api/azure/devops/git/), one organization or collection, which lists all of its
 * repositories at once.
 */
export function browseAzure(api: AzureApi): ForgeBrowser {
  async function listed(url: string, signal: AbortSignal): Promise<readonly unknown[] | null> {
    const answer = await api.call(url, "GET", signal, whileChoosing);
    if (answer.status === 404) return null;
    if (answer.status !== 200) throw refusedBy(api.host, answer, "search");
    return answer.body as unknown[];
  }

  return {
    async repositories(within, query, signal) {
      const [collection = "", project] = within.split("/").map(decodeURIComponent);
      if (collection === "") throw noCollection(api.host);
      const below = project === undefined ? "" : `/${encodeURIComponent(project)}`;
      const url = api.urlOf(collection, `${below}/_apis/git/repositories`);
      const all = ((await listed(url, signal)) ?? []) as Repository[];
      const items = all.filter(({ isDisabled }) => isDisabled !== true).map((each) => repositoryOf(collection, each));
      return narrowed<FoundRepository>({ items, isComplete: true }, ({ name }) => name, query);
    },
    async branches(address, query, signal) {
      const wanted = { filter: "heads/", ...(query !== "" && { filterContains: query }), $top: `${branchesAtMost}` };
      const url = api.repositoryUrl(api.repositoryOf(address), `/refs?${queryOf(wanted)}`);
      const refs = ((await listed(url, signal)) ?? []) as { readonly name: string }[];
      const items = refs.map(({ name }) => name.replace(/^refs\/heads\//u, ""));
      return { items, isComplete: refs.length < branchesAtMost };
    },
    async files(address, branch, folder, signal): Promise<FoundItems<string>> {
      const wanted = {
        scopePath: `/${folder}`,
        recursionLevel: "Full",
        "versionDescriptor.version": branch,
        "versionDescriptor.versionType": "branch",
      };
      const url = api.repositoryUrl(api.repositoryOf(address), `/items?${queryOf(wanted)}`);
      const entries = ((await listed(url, signal)) ?? []) as {
        readonly gitObjectType?: string;
        readonly path: string;
      }[];
      const files = entries.filter(({ gitObjectType }) => gitObjectType === "blob");
      return { items: files.map(({ path }) => path.replace(/^\//u, "")), isComplete: true };
    },
  };
}

function repositoryOf(collection: string, { name, remoteUrl, defaultBranch, project }: Repository): FoundRepository {
  const url = new URL(remoteUrl);
  // It has the name of the requesting user.
  url.username = "";
  return {
    name: `${collection}/${project.name}/${name}`,
    url: url.href,
    defaultBranch: defaultBranch?.replace(/^refs\/heads\//u, "") ?? null,
    description: null,
  };
}

function noCollection(host: string): SessionError {
  return new SessionError({
    code: "repository_not_found",
    reason: `${host} lists the repositories of one organization or collection, and its address names none.`,
    retryable: false,
    remedy: "Write the repository's address, or connect the address of an organization.",
  });
}
