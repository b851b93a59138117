/** The next page of a list, where there is one. */
export function ShowMore({
  list,
}: {
  list: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => Promise<unknown>;
  };
}) {
  if (!list.hasNextPage) return null;
  return (
    <button
      type="button"
      className="button"
      disabled={list.isFetchingNextPage}
      onClick={() => void list.fetchNextPage()}
    >
      Show more
    </button>
  );
}
