import {
  pathPart,
  queryOf,
  readPages,
  type Ask,
  type ForgeBrowser,
  type FoundItems,
  type FoundRepository,
} from "../browse.ts";
import type { RepositoryCall } from "../forge.ts";

interface Repository {
  readonly slug: string;
  readonly description?: string;
  readonly project: { readonly key: string };
  readonly links: { readonly clone?: readonly { readonly name: string; readonly href: string }[] };
}

interface Page<Item> {
  readonly values: readonly Item[];
  readonly isLastPage: boolean;
  readonly nextPageStart?: number | null;
}

const pageSize = 100;
const filesOfPage = 1_000;

/** Looks through Bitbucket Data Center (https://developer.atlassian.com/server/bitbucket/rest/). */
export function browseBitbucketDataCenter(
  host: string,
  { ask, call }: { readonly ask: Ask; readonly call: RepositoryCall },
): ForgeBrowser {
  /** Reads pages, each from where the one before says that the next begins: a server may give less than it is asked for. */
  function pages<Item>(
    askFor: (query: Record<string, string>) => ReturnType<Ask>,
    size: number,
    itemsOf: (raw: never) => readonly Item[],
  ): Promise<FoundItems<Item>> {
    let start = 0;
    return readPages(
      host,
      () => askFor({ limit: `${size}`, start: `${start}` }),
      ({ body }) => {
        const { values, isLastPage, nextPageStart } = body as Page<never>;
        start = nextPageStart ?? start + values.length;
        return { items: values.flatMap(itemsOf), isLast: isLastPage };
      },
    );
  }

  return {
    repositories(within, query, signal) {
      const project = within.split("/").at(-1) ?? "";
      const wanted: Record<string, string> = {
        ...(query !== "" && { name: query.split("/").at(-1) ?? query }),
        ...(project !== "" && { projectkey: project }),
      };
      return pages((paging) => ask(`/repos?${queryOf({ ...wanted, ...paging })}`, signal), pageSize, repositoryOf);
    },
    branches(address, query, signal) {
      const wanted: Record<string, string> = query === "" ? {} : { filterText: query };
      return pages(
        (paging) => call(address, "GET", `/branches?${queryOf({ ...wanted, ...paging })}`, signal),
        pageSize,
        ({ displayId }: { readonly displayId: string }) => [displayId],
      );
    },
    async files(address, branch, folder, signal) {
      const path = folder === "" ? "/files" : `/files/${pathPart(folder)}`;
      const found = await pages(
        async (paging) => {
          const wanted = queryOf({ at: `refs/heads/${branch}`, ...paging });
          const answer = await call(address, "GET", `${path}?${wanted}`, signal);
          // A folder, or a repository, in which nothing is.
          return answer.status === 404 ? { ...answer, status: 200, body: { values: [], isLastPage: true } } : answer;
        },
        filesOfPage,
        (name: string) => [name],
      );
      const below = folder === "" ? "" : `${folder}/`;
      return { ...found, items: found.items.map((name) => below + name) };
    },
  };
}

/** One that git can't reach over HTTP is none here. */
function repositoryOf({ slug, description, project, links }: Repository): FoundRepository[] {
  const href = links.clone?.find(({ name }) => name === "http" || name === "https")?.href;
  if (href === undefined) return [];
  const url = new URL(href);
  // It has the name of the requesting user.
  url.username = "";
  return [{ name: `${project.key}/${slug}`, url: url.href, defaultBranch: null, description: description ?? null }];
}
