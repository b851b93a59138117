import { MutationCache, QueryCache, QueryClient, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { ClientError, createClient } from "../client.ts";
import type { Scope } from "../domain/people/key.ts";
import type { Me } from "../domain/people/me.ts";

/** The token of the link that this page was opened by, if it shows one session to whoever has the link; null: it does not. */
const shareToken = globalThis.location?.pathname.startsWith("/shared/") ? location.hash.slice(1) : null;

/** Whether the page shows one session to somebody who has a link to it, and who may do nothing. */
export const isShared = shareToken !== null;

/** Client of this page's own server, authenticated by the browser's cookie, or by the link that the page was opened by. */
export const client = createClient({
  baseUrl: "",
  schemas: () => import("./answers.ts"),
  ...(shareToken !== null && { key: shareToken }),
});

/** @param onSignedOut called whenever the server answers that the browser is not signed in */
export function createQueryClient(onSignedOut: () => void): QueryClient {
  const onError = (error: Error): void => {
    if (error instanceof ClientError && error.status === 401) onSignedOut();
  };
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // Retry lost connections, not refusals.
      queries: { retry: (count, error) => !(error instanceof ClientError && error.status < 500) && count < 3 },
      mutations: { retry: false },
    },
  });
}

/**
 * Who is signed in, and what they may do: what they may not do is not offered.
 * @param enabled false: nobody is, and nothing is asked
 */
export function useMe(enabled = true): UseQueryResult<Me> {
  return useQuery({ queryKey: ["me"], queryFn: () => client.me(), enabled: enabled && !isShared });
}

/**
 * Whether what needs a scope is offered to whoever is signed in. Until their scopes are known it is, so that nothing moves for those
 * who may, who are nearly all.
 */
export function useMay(scope: Scope): boolean {
  const scopes = useMe().data?.scopes;
  return !isShared && (scopes === undefined || scopes.includes(scope));
}
