/**
 * The search parameters of a page's address. While the page makes way for another, it is drawn once more without its
 * address, and has nothing: asked otherwise, the router would throw.
 * @param search undefined: the address is another page's
 */
export function searchOfPage<Search extends object>(search: Search | undefined): Partial<Search> {
  return search ?? {};
}
