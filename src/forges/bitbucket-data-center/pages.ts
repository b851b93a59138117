import type { ForgeAnswer } from "../http/http.ts";

/** A page of a list (https://developer.atlassian.com/server/bitbucket/how-tos/command-line-rest/, Paged APIs). */
interface Page {
  readonly values?: unknown;
  readonly isLastPage?: unknown;
  readonly nextPageStart?: unknown;
}

/** Most items of a page that are asked for; an administrator may allow fewer. */
const pageSize = 100;

/**
 * Reads a list page by page.
 * @param ask sends the request for a page, with these fields in its query
 * @param pages most pages
 * @returns the items of each page; a `ForgeAnswer` if a page could not be had
 */
export async function* readPages(
  ask: (paging: Readonly<Record<string, string>>) => Promise<ForgeAnswer>,
  pages: number,
): AsyncGenerator<{ readonly items: readonly unknown[] } | { readonly refused: ForgeAnswer }> {
  let start = 0;
  for (let page = 1; page <= pages; page += 1) {
    const answer = await ask({ start: String(start), limit: String(pageSize) });
    const { values, isLastPage, nextPageStart } = (answer.body ?? {}) as Page;
    if (answer.status !== 200 || !Array.isArray(values)) {
      yield { refused: answer };
      return;
    }
    yield { items: values };
    if (isLastPage !== false || typeof nextPageStart !== "number" || nextPageStart <= start) return;
    start = nextPageStart;
  }
}
