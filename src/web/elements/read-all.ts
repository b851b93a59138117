/** Of a longer list nobody chooses without searching it. */
const mostPages = 10;

/** What a list has on its pages, to choose from. */
export async function readAll<Item>(
  read: (cursor: string | undefined) => Promise<{ readonly items: readonly Item[]; readonly next: string | null }>,
): Promise<Item[]> {
  const all: Item[] = [];
  let cursor: string | null | undefined;
  for (let pages = 0; pages < mostPages && cursor !== null; pages += 1) {
    // oxlint-disable-next-line no-await-in-loop -- each page says where the next begins
    const { items, next }: { items: readonly Item[]; next: string | null } = await read(cursor);
    all.push(...items);
    cursor = next;
  }
  return all;
}
