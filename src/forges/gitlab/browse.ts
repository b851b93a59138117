import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { byLength, queryOf, readPages, type Ask, type ForgeBrowser } from "../browse.ts";
import type { RepositoryCall } from "../forge.ts";

interface Project {
  readonly path_with_namespace: string;
  readonly http_url_to_repo: string;
  readonly default_branch?: string | null;
  readonly description: string | null;
}

const pageSize = 100;

/**
 * Looks through GitLab (https://docs.gitlab.com/api/projects/, https://docs.gitlab.com/api/branches/,
 * https://docs.gitlab.com/api/repositories/), which searches on its side.
 */
export function browseGitLab(
  host: string,
  { ask, call }: { readonly ask: Ask; readonly call: RepositoryCall },
): ForgeBrowser {
  return {
    repositories(within, query, signal) {
      const path =
        within === ""
          ? "/projects?membership=true&"
          : `/groups/${encodeURIComponent(within)}/projects?include_subgroups=true&`;
      const wanted = { simple: "true", archived: "false", order_by: "last_activity_at", per_page: `${pageSize}` };
      const search = query === "" ? {} : { search: query, search_namespaces: "true" };
      return readPages(
        host,
        (page) => ask(path + queryOf({ ...wanted, ...search, page: `${page}` }), signal),
        byLength(pageSize, (project: Project) => ({
          name: project.path_with_namespace,
          url: project.http_url_to_repo,
          defaultBranch: project.default_branch ?? null,
          description: project.description,
        })),
      );
    },
    branches(address, query, signal) {
      const search = query === "" ? {} : { search: query };
      return readPages(
        host,
        (page) => {
          const wanted = queryOf({ ...search, per_page: `${pageSize}`, page: `${page}` });
          return call(address, "GET", `/repository/branches?${wanted}`, signal);
        },
        byLength(pageSize, ({ name }: { readonly name: string }) => name),
      );
    },
    async files(address, branch, folder, signal) {
      // Pages of a tree are small here: a large one is looked through folder by folder.
      const found = await readPages(host, (page) => treePage(address, { branch, folder, page }, signal), readTree);
      return { ...found, items: found.items.flat() };
    },
  };

  function treePage(
    address: RepositoryAddress,
    { branch, folder, page }: { readonly branch: string; readonly folder: string; readonly page: number },
    signal: AbortSignal,
  ) {
    const wanted = { ref: branch, path: folder, recursive: "true", per_page: `${pageSize}`, page: `${page}` };
    return call(address, "GET", `/repository/tree?${queryOf(wanted)}`, signal).then((answer) =>
      // A folder, or a repository, in which nothing is.
      answer.status === 404 && page === 1 ? { ...answer, status: 200, body: [] } : answer,
    );
  }
}

const readTree = byLength(pageSize, ({ type, path }: { readonly type: string; readonly path: string }) =>
  type === "blob" ? [path] : [],
);
