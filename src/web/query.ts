import { MutationCache, QueryCache, QueryClient, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { ClientError, createClient } from "../client.ts";
import type { Scope } from "../domain/people/key.ts";
import type { Me } from "../domain/people/me.ts";

/** The token of the link that this page was opened by, if it shows a shared session; null: it does not. */
const shareToken = globalThis.location?.pathname.startsWith("/shared/") ? location.hash.slice(1) : null;

/** Whether the page shows one session by a share link, read-only. */
export const isShared = shareToken !== null;

/** Client of this page's own server, authenticated by the browser's cookie, or by the link that the page was opened by. */
export const client = createClient({
  baseUrl: "",
  schemas: () => import("./answers.ts"),
  ...(shareToken !== null && { key: shareToken }),
});

/**
 * @param onSignedOut called whenever the server answers that the browser is not signed in, with whether to a person's own action, not to
 *   what the page asks for by itself
 * @param onOtherRole called with a refusal that shows that the user's role has changed, and so what the page offers
 */
export function createQueryClient(
  onSignedOut: (isAction: boolean) => void,
  onOtherRole: (refused: Error) => void,
): QueryClient {
  const onError = (error: Error, isAction: boolean): void => {
    if (!(error instanceof ClientError)) return;
    if (error.status === 401) onSignedOut(isAction);
    if (error.status === 403) void lookAgain(error);
  };
  const lookAgain = async (refused: Error): Promise<void> => {
    const scopes = (): string => JSON.stringify(queries.getQueryData<Me>(["me"])?.scopes);
    const before = scopes();
    await queries.invalidateQueries({ queryKey: ["me"] });
    if (scopes() !== before) onOtherRole(refused);
  };
  const queries = new QueryClient({
    queryCache: new QueryCache({ onError: (error) => onError(error, false) }),
    mutationCache: new MutationCache({ onError: (error) => onError(error, true) }),
    defaultOptions: {
      // Retry lost connections, not refusals.
      queries: { retry: (count, error) => !(error instanceof ClientError && error.status < 500) && count < 3 },
      mutations: { retry: false },
    },
  });
  return queries;
}

/**
 * The signed-in user and their scopes: the page offers only what they allow.
 * @param enabled false: no user is signed in, and no request is sent
 */
export function useMe(enabled = true): UseQueryResult<Me> {
  return useQuery({ queryKey: ["me"], queryFn: () => client.me(), enabled: enabled && !isShared });
}

/**
 * Whether the page offers what needs a scope. It does until the user's scopes are known, so that nothing moves for
 * those who have it, who are nearly all.
 */
export function useMay(scope: Scope): boolean {
  const scopes = useMe().data?.scopes;
  return !isShared && (scopes === undefined || scopes.includes(scope));
}
