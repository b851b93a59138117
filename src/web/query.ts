import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ClientError, createClient } from "../client.ts";

/** The API of the server that served this page; the browser's cookie says who asks. */
export const client = createClient({ baseUrl: "" });

/** @param onSignedOut called whenever the server says that nobody is signed in */
export function createQueryClient(onSignedOut: () => void): QueryClient {
  const onError = (error: Error): void => {
    if (error instanceof ClientError && error.status === 401) onSignedOut();
  };
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // What the server refuses it refuses the second time too; a lost connection is tried again.
      queries: { retry: (count, error) => !(error instanceof ClientError && error.status < 500) && count < 3 },
      mutations: { retry: false },
    },
  });
}
