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
import type { ForgeAnswer } from "../http/http.ts";

interface Repository {
  readonly full_name: string;
  readonly mainbranch: { readonly name: string } | null;
  readonly description: string;
  readonly links: { readonly clone: readonly { readonly name: string; readonly href: string }[] };
}

interface Page<Item> {
  readonly values: readonly Item[];
  readonly next?: string;
}

const pageSize = 100;
/** Workspaces of a user that are looked through, if the address names none. */
const workspacesAtMost = 5;
/** Folders within folders that one question lists. */
const depth = 20;

/** Looks through Bitbucket Cloud (https://developer.atlassian.com/cloud/bitbucket/rest/), which filters on its side. */
export function browseBitbucket(
  host: string,
  { ask, call }: { readonly ask: Ask; readonly call: RepositoryCall },
): ForgeBrowser {
  async function workspaces(signal: AbortSignal): Promise<string[]> {
    const found = await readPages(
      host,
      (page) => ask(`/user/workspaces?pagelen=${pageSize}&page=${page}`, signal),
      paged(({ workspace: { slug } }: { readonly workspace: { readonly slug: string } }) => slug),
    );
    return found.items.slice(0, workspacesAtMost);
  }

  async function ofWorkspace(
    workspace: string,
    query: string,
    signal: AbortSignal,
  ): Promise<FoundItems<FoundRepository>> {
    const search: Record<string, string> = query === "" ? {} : { q: `name ~ ${quoted(query)}` };
    return readPages(
      host,
      (page) => {
        const wanted = queryOf({ ...search, sort: "-updated_on", pagelen: `${pageSize}`, page: `${page}` });
        return ask(`/repositories/${encodeURIComponent(workspace)}?${wanted}`, signal);
      },
      paged(repositoryOf),
    );
  }

  return {
    async repositories(within, query, signal) {
      const all = within === "" ? await workspaces(signal) : [within];
      const found = await Promise.all(all.map((workspace) => ofWorkspace(workspace, query, signal)));
      return {
        items: found.flatMap(({ items }) => items),
        isComplete: all.length < workspacesAtMost && found.every(({ isComplete }) => isComplete),
      };
    },
    branches(address, query, signal) {
      const search: Record<string, string> = query === "" ? {} : { q: `name ~ ${quoted(query)}` };
      return readPages(
        host,
        (page) => {
          const wanted = queryOf({ ...search, pagelen: `${pageSize}`, page: `${page}` });
          return call(address, "GET", `/refs/branches?${wanted}`, signal);
        },
        paged(({ name }: { readonly name: string }) => name),
      );
    },
    async files(address, branch, folder, signal) {
      // A branch whose name has slashes is no part of a path here: its commit is.
      const head = await call(address, "GET", `/refs/branches/${pathPart(branch)}`, signal);
      const { target } = (head.body ?? {}) as { readonly target?: { readonly hash: string } };
      if (head.status === 404 || target === undefined) return { items: [], isComplete: true };
      const below = folder === "" ? "" : `${pathPart(folder)}/`;
      // The next page is known by a cursor alone, so only the first is read: a large tree is looked through folder by folder.
      const wanted = queryOf({ pagelen: `${pageSize}`, max_depth: `${depth}` });
      const answer = await call(address, "GET", `/src/${target.hash}/${below}?${wanted}`, signal);
      if (answer.status === 404) return { items: [], isComplete: true };
      const found = await readPages(
        host,
        () => Promise.resolve(answer),
        (only) => ({ ...paged(fileOf)(only), isLast: true }),
      );
      return { items: found.items.flat(), isComplete: paged(fileOf)(answer).isLast };
    },
  };
}

function paged<Item>(itemOf: (raw: never) => Item) {
  return ({ body }: ForgeAnswer): { items: Item[]; isLast: boolean } => {
    const { values, next } = body as Page<never>;
    return { items: values.map(itemOf), isLast: next === undefined };
  };
}

const fileOf = ({ type, path }: { readonly type: string; readonly path: string }): string[] =>
  type === "commit_file" ? [path] : [];

function repositoryOf({ full_name: name, mainbranch, description, links }: Repository): FoundRepository {
  const address = links.clone.find((link) => link.name === "https")?.href ?? `https://bitbucket.org/${name}.git`;
  const url = new URL(address);
  // It has the name of the requesting user.
  url.username = "";
  return { name, url: url.href, defaultBranch: mainbranch?.name ?? null, description };
}

/** A text in Bitbucket's language of filters. */
const quoted = (text: string): string => `"${text.replaceAll(/["\\]/gu, String.raw`\$&`)}"`;
