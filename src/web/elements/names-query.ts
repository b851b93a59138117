/** A longer list is useless without a search. */
const mostPages = 10;

/** How long the names that something is narrowed by are taken for the present ones, in ms. */
const staleTime = 60_000;

/**
 * The query of what a list has on its pages, to choose from.
 * @param what begins its key: an invalidation of all its queries includes this one
 */
export function namesQuery<Page extends { readonly nextCursor: string | null }, Item>(
  what: string,
  read: (page: { readonly limit: number; readonly cursor: string | undefined }) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
) {
  return { queryKey: [what, "names"], queryFn: () => readAll(read, itemsOf), staleTime };
}

async function readAll<Page extends { readonly nextCursor: string | null }, Item>(
  read: (page: { readonly limit: number; readonly cursor: string | undefined }) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
): Promise<Item[]> {
  const all: Item[] = [];
  let cursor: string | null | undefined;
  for (let pages = 0; pages < mostPages && cursor !== null; pages += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each page says where the next begins
    const page: Page = await read({ limit: 100, cursor });
    all.push(...itemsOf(page));
    cursor = page.nextCursor;
  }
  return all;
}
