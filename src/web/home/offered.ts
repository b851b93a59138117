import { useQuery } from "@tanstack/react-query";
import { client } from "../query.ts";
import type { Draft } from "./draft.ts";

/** Asks for the repositories that the organization's forges show by a part of their names. */
export function offeredQuery(words: string) {
  return {
    queryKey: ["repositories", "offered", words],
    queryFn: () => client.repository.search(words),
    staleTime: 60_000,
    retry: false,
  };
}

/** Whether two addresses name the same repository: forges write the end in several ways. */
export function sameAddress(one: string, other: string): boolean {
  const plain = (url: string): string => url.toLowerCase().replace(/(?:\.git)?\/*$/u, "");
  return plain(one) === plain(other);
}

/**
 * The branch that a session of this repository is about if no other is chosen: the one that the repository is
 * configured for, else what its forge says is the default one. Null: unknown; undefined: the forge is being asked.
 */
export function useDefaultBranch(repository: Draft["repository"], isWanted: boolean): string | null | undefined {
  const configured = repository?.branch ?? null;
  const offered = useQuery({
    ...offeredQuery(repository?.name ?? ""),
    enabled: isWanted && repository !== null && configured === null,
  });
  if (repository === null || configured !== null) return configured;
  if (offered.isLoading) return undefined;
  return offered.data?.repositories.find(({ url }) => sameAddress(url, repository.url))?.defaultBranch ?? null;
}
