import { narrowed, pathPart, queryOf, readPages, type Ask, type ForgeBrowser } from "../browse.ts";
import type { RepositoryCall } from "../forge.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { hasNextPage } from "../pull-requests.ts";

interface Repository {
  readonly full_name: string;
  readonly clone_url: string;
  readonly default_branch: string;
  readonly description: string;
}

interface Tree {
  readonly tree: readonly { readonly type: string; readonly path: string }[];
  readonly truncated: boolean;
}

/** Asked for; an administrator may allow fewer (MAX_RESPONSE_ITEMS). */
const pageSize = 50;
const treePageSize = 1_000;

/** Looks through Gitea or Forgejo (https://docs.gitea.com/api/). */
export function browseGitea(
  host: string,
  { ask, call }: { readonly ask: Ask; readonly call: RepositoryCall },
): ForgeBrowser {
  return {
    async repositories(within, query, signal) {
      const wanted = { q: query, sort: "updated", order: "desc", limit: `${pageSize}` };
      const found = await readPages(
        host,
        (page) => ask(`/repos/search?${queryOf({ ...wanted, page: `${page}` })}`, signal),
        byHeaders(
          (body) => (body as { readonly data: readonly Repository[] }).data,
          (repository) => ({
            name: repository.full_name,
            url: repository.clone_url,
            defaultBranch: repository.default_branch,
            description: repository.description,
          }),
        ),
      );
      const isWithin = ({ name }: { readonly name: string }): boolean =>
        within === "" || name.toLowerCase().startsWith(`${within.toLowerCase()}/`);
      return { ...found, items: found.items.filter(isWithin) };
    },
    async branches(address, query, signal) {
      const all = await readPages(
        host,
        (page) => call(address, "GET", `/branches?limit=${pageSize}&page=${page}`, signal),
        byHeaders(
          (body) => body as readonly { readonly name: string }[],
          ({ name }) => name,
        ),
      );
      return narrowed(all, (name) => name, query);
    },
    async files(address, branch, folder, signal) {
      const at = folder === "" ? pathPart(branch) : `${pathPart(branch)}:${pathPart(folder)}`;
      const found = await readPages(
        host,
        async (page) => {
          const wanted = queryOf({ recursive: "true", per_page: `${treePageSize}`, page: `${page}` });
          const answer = await call(address, "GET", `/git/trees/${at}?${wanted}`, signal);
          // A folder, or a repository, in which nothing is.
          return answer.status === 404 && page === 1
            ? { ...answer, status: 200, body: { tree: [], truncated: false } }
            : answer;
        },
        readTree,
      );
      const below = folder === "" ? "" : `${folder}/`;
      return { ...found, items: found.items.map((path) => below + path) };
    },
  };
}

/**
 * The pages of one list, of which each says whether it is the last: its length does not show that.
 * @param listIn the items in an answer's body
 */
function byHeaders<Raw, Item>(listIn: (body: unknown) => readonly Raw[], itemOf: (raw: Raw) => Item) {
  let seen = 0;
  return (answer: ForgeAnswer): { items: Item[]; isLast: boolean } => {
    const all = listIn(answer.body);
    seen += all.length;
    return { items: all.map(itemOf), isLast: !(hasNextPage(answer, seen) ?? all.length > 0) };
  };
}

function readTree({ body }: ForgeAnswer): { items: string[]; isLast: boolean } {
  const { tree, truncated } = body as Tree;
  return { items: tree.flatMap(({ type, path }) => (type === "blob" ? [path] : [])), isLast: !truncated };
}
