import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Repository } from "../../domain/repositories/repository.ts";
import { client } from "../query.ts";

/** The organization's repositories, as far as they are loaded. */
export interface Repositories {
  /** The newest first; undefined: none is loaded yet. */
  readonly repositories: readonly Repository[] | undefined;
  readonly hasMore: boolean;
  readonly error: Error | null;
  readonly retry: () => Promise<unknown>;
}

/**
 * Loads the organization's repositories, page by page.
 * @param isEnough whether those that are loaded are enough; until then the next page is loaded
 */
export function useRepositories(isEnough: (repositories: readonly Repository[]) => boolean): Repositories {
  const { data, error, hasNextPage, isFetching, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ["repositories", "pages"],
    queryFn: ({ pageParam }) => client.repository.list({ limit: 100, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
  });
  const repositories = data?.pages.flatMap((page) => page.codeRepositories);
  const wantsMore =
    hasNextPage && !isFetching && error === null && repositories !== undefined && !isEnough(repositories);
  useEffect(() => {
    if (wantsMore) void fetchNextPage();
  }, [wantsMore, fetchNextPage]);
  return { repositories, hasMore: hasNextPage, error, retry: refetch };
}
