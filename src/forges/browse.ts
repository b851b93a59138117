import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import type { ForgeAnswer } from "./http/http.ts";
import { refusedBy } from "./http/refusal.ts";

/** A repository that a forge shows. */
export interface FoundRepository {
  /** Its whole name on the forge, owners included. */
  readonly name: string;
  /** Its clone address. */
  readonly url: string;
  readonly defaultBranch: string | null;
  readonly description: string | null;
}

/** The found items. */
export interface FoundItems<Item> {
  readonly items: readonly Item[];
  /** False if there may be more: no more is asked of the forge. */
  readonly isComplete: boolean;
}

/**
 * Lists a forge's repositories, branches and files, for people who choose. Each call sends few requests, each once and
 * with a short time limit: people can type what it does not find. It throws `SessionError` as the forge does.
 */
export interface ForgeBrowser {
  /**
   * Repositories that the credential sees, those in use first.
   * @param within path of one owner below the forge's server, to which the search is limited; "": none
   * @param query what their names have; "": anything
   */
  repositories(within: string, query: string, signal: AbortSignal): Promise<FoundItems<FoundRepository>>;
  /** Names of branches that have `query`; "": anything. */
  branches(address: RepositoryAddress, query: string, signal: AbortSignal): Promise<FoundItems<string>>;
  /** Paths of files at a branch, from the repository's root. @param folder that they are below; "": the root */
  files(address: RepositoryAddress, branch: string, folder: string, signal: AbortSignal): Promise<FoundItems<string>>;
}

/** Asks a forge's API one question, by the path of the API. */
export type Ask = (path: string, signal: AbortSignal) => Promise<ForgeAnswer>;

/** Options of a request that people wait for with a list open: it is asked once. */
export const whileChoosing = { onceWithinMs: 6_000 };

/** Most pages that one search reads. */
const pageLimit = 5;

/**
 * Reads pages until one says that it is the last.
 * @param ask asks for a page, from 1
 * @param read the items of an answer, and whether there are more after it; null: what was asked about has none
 */
export async function readPages<Item>(
  host: string,
  ask: (page: number) => Promise<ForgeAnswer>,
  read: (answer: ForgeAnswer) => { readonly items: readonly Item[]; readonly isLast: boolean },
): Promise<FoundItems<Item>> {
  const items: Item[] = [];
  for (let page = 1; page <= pageLimit; page += 1) {
    const answer = await ask(page);
    if (answer.status !== 200) throw refusedBy(host, answer, "search");
    const found = read(answer);
    items.push(...found.items);
    if (found.isLast) return { items, isComplete: true };
  }
  return { items, isComplete: false };
}

/** A page of a list that says by its length whether it is the last. @param size of a whole page */
export function byLength<Item>(size: number, itemOf: (raw: never) => Item) {
  return ({ body }: ForgeAnswer): { items: Item[]; isLast: boolean } => {
    const all = body as never[];
    return { items: all.map(itemOf), isLast: all.length < size };
  };
}

/** Parameters of a path's query. */
export const queryOf = (parameters: Readonly<Record<string, string>>): string =>
  new URLSearchParams(parameters).toString();

/** A path as a part of a URL's path, with its own slashes. */
export const pathPart = (path: string): string => path.split("/").map(encodeURIComponent).join("/");

/** Whether a name has the words of a search. */
export function hasQuery(name: string, query: string): boolean {
  return name.toLowerCase().includes(query.toLowerCase());
}

/** Those of a list that have the words of a search. */
export function narrowed<Item>(
  found: FoundItems<Item>,
  nameOf: (item: Item) => string,
  query: string,
): FoundItems<Item> {
  return { ...found, items: found.items.filter((item) => hasQuery(nameOf(item), query)) };
}
