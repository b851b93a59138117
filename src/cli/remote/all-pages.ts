/** All that a list has, over as many pages as it takes. @param readPage the items of the page at a cursor, and where the next one begins */
export async function allPages<Item>(
  readPage: (
    cursor: string | undefined,
  ) => Promise<{ readonly items: readonly Item[]; readonly nextCursor: string | null }>,
): Promise<readonly Item[]> {
  const found: Item[] = [];
  let cursor: string | undefined;
  for (;;) {
    const { items, nextCursor } = await readPage(cursor);
    found.push(...items);
    if (nextCursor === null) return found;
    cursor = nextCursor;
  }
}
