import type { RepositoryCall } from "../forge.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { ForgeAnswer } from "../http/http.ts";

/** A page of a list (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#pagination). */
interface Page {
  readonly values?: unknown;
  readonly next?: unknown;
}

/** Which list is read, and how far. */
interface Asked {
  readonly address: RepositoryAddress;
  /** Below the repository. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Most pages. */
  readonly pages: number;
}

/**
 * Reads a list page by page. Only the query of the next page's address is used: it is requested at the first one's
 * address, so that no answer leads the credential to another server.
 * @returns the items of each page; a `ForgeAnswer` if a page could not be had
 */
export async function* readPages(
  call: RepositoryCall,
  { address, path, query, pages }: Asked,
  signal: AbortSignal,
): AsyncGenerator<{ readonly items: readonly unknown[] } | { readonly refused: ForgeAnswer }> {
  let search = `?${query.toString()}`;
  for (let page = 1; page <= pages; page += 1) {
    const answer = await call(address, "GET", `${path}${search}`, signal);
    const { values, next } = (answer.body ?? {}) as Page;
    if (answer.status !== 200 || !Array.isArray(values)) {
      yield { refused: answer };
      return;
    }
    yield { items: values };
    const following = typeof next === "string" ? URL.parse(next) : null;
    if (following === null) return;
    search = following.search;
  }
}

/** A text as the query language takes it (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#filtering). */
export function queryText(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
