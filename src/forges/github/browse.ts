import type { components } from "@octokit/openapi-types";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import {
  byLength,
  narrowed,
  pathPart,
  queryOf,
  readPages,
  type Ask,
  type ForgeBrowser,
  type FoundItems,
  type FoundRepository,
} from "../browse.ts";
import type { ForgeAnswer, ForgeRequest } from "../http/http.ts";
import { refusedBy } from "../http/refusal.ts";

type Repository = Pick<
  components["schemas"]["repository"],
  "full_name" | "clone_url" | "default_branch" | "description"
>;
type Tree = Pick<components["schemas"]["git-tree"], "tree" | "truncated">;

/** How a repository is asked about. */
type AskAbout = (
  address: RepositoryAddress,
  method: ForgeRequest["method"],
  path: string,
  signal: AbortSignal,
) => Promise<ForgeAnswer>;

const pageSize = 100;
/** Owners whom a search names: a query of GitHub's may not be longer. */
const ownersOfSearch = 8;

/**
 * Looks through GitHub (https://docs.github.com/rest/repos/repos, https://docs.github.com/rest/search/search).
 * @param lists asks for lists of all repositories that the credential sees: one for a user, one for each installation of an App
 */
export function browseGitHub(
  host: string,
  api: { readonly ask: Ask; readonly call: AskAbout; readonly lists: (signal: AbortSignal) => Promise<readonly Ask[]> },
): ForgeBrowser {
  async function listed(signal: AbortSignal): Promise<FoundItems<FoundRepository>> {
    const lists = await api.lists(signal);
    const all = await Promise.all(
      lists.map((ask) =>
        readPages(host, (page) => ask(queryOf({ per_page: `${pageSize}`, page: `${page}` }), signal), read),
      ),
    );
    return { items: all.flatMap(({ items }) => items), isComplete: all.every(({ isComplete }) => isComplete) };
  }

  return {
    async repositories(within, query, signal) {
      const all = await listed(signal);
      const isWithin = ({ name }: FoundRepository): boolean =>
        within === "" || name.toLowerCase().startsWith(`${within.toLowerCase()}/`);
      const found = narrowed({ ...all, items: all.items.filter(isWithin) }, ({ name }) => name, query);
      if (all.isComplete || query === "") return found;
      const owners = new Set(all.items.map(({ name }) => name.split("/")[0] ?? ""));
      const whose = within === "" ? [...owners].slice(0, ownersOfSearch) : [within];
      const words = [query.replaceAll(/[:"]/gu, " "), "in:name fork:true", ...whose.map((owner) => `user:${owner}`)];
      const search = queryOf({ q: words.join(" "), per_page: `${pageSize}` });
      const answer = await api.ask(`/search/repositories?${search}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "search");
      const { items } = answer.body as { items: Repository[] };
      const more = items.map(repositoryOf).filter(({ name }) => !found.items.some((known) => known.name === name));
      return { items: [...found.items, ...more], isComplete: false };
    },
    async branches(address, query, signal) {
      const all = await readPages(
        host,
        (page) => api.call(address, "GET", `/branches?per_page=${pageSize}&page=${page}`, signal),
        byLength(pageSize, ({ name }: { readonly name: string }) => name),
      );
      const found = narrowed(all, (name) => name, query);
      if (all.isComplete || query === "") return found;
      const answer = await api.call(address, "GET", `/git/matching-refs/heads/${pathPart(query)}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer, "search");
      const more = (answer.body as { ref: string }[]).map(({ ref }) => ref.replace(/^refs\/heads\//u, ""));
      return { items: [...new Set([...found.items, ...more])], isComplete: false };
    },
    async files(address, branch, folder, signal) {
      if (folder !== "") return folderOf(address, branch, folder, signal);
      const answer = await api.call(address, "GET", `/git/trees/${pathPart(branch)}?recursive=1`, signal);
      // 409: the repository is empty.
      if (answer.status === 409) return { items: [], isComplete: true };
      if (answer.status !== 200) throw refusedBy(host, answer, "search");
      const { tree, truncated } = answer.body as Tree;
      const items = tree.flatMap(({ type, path }) => (type === "blob" && path !== undefined ? [path] : []));
      return { items, isComplete: !truncated };
    },
  };

  /** The files that lie in a folder itself: the whole of what is below can't be asked for by its name. */
  async function folderOf(address: RepositoryAddress, branch: string, folder: string, signal: AbortSignal) {
    const path = `/contents/${pathPart(folder)}?${queryOf({ ref: branch })}`;
    const answer = await api.call(address, "GET", path, signal);
    if (answer.status === 404) return { items: [], isComplete: true };
    if (answer.status !== 200) throw refusedBy(host, answer, "search");
    const entries = answer.body as { type: string; path: string }[] | { type: string; path: string };
    const files = [entries].flat().filter(({ type }) => type === "file");
    return { items: files.map(({ path: of }) => of), isComplete: false };
  }
}

const repositoryOf = ({ full_name: name, clone_url: url, default_branch: defaultBranch, description }: Repository) => ({
  name,
  url,
  defaultBranch,
  description,
});

/** A page of a user's repositories, or of an installation's. */
function read(answer: ForgeAnswer): { items: FoundRepository[]; isLast: boolean } {
  const body = answer.body as Repository[] | { repositories: Repository[] };
  const all = Array.isArray(body) ? body : body.repositories;
  return { items: all.map(repositoryOf), isLast: all.length < pageSize };
}
