import type { Terminal } from "../terminal/commands.ts";
import { refreshed, type LoginTokens } from "./browser-login.ts";
import { readCredentials, writeCredentials } from "./credentials.ts";

/** How long before its end an access token is no longer used, in ms: a request takes time, and clocks differ. */
const marginMs = 60_000;

/**
 * Makes a `fetch` as the person who allowed it in their browser. It gets new tokens when the old ones end, and keeps them. Another
 * process may do the same at that moment: the server lets both.
 */
export function personFetch(server: string, first: LoginTokens, terminal: Pick<Terminal, "environment">): typeof fetch {
  let tokens = first;
  let renewing: Promise<boolean> | null = null;

  /** @returns false if the person must sign in again */
  async function renew(): Promise<boolean> {
    const stored = await readCredentials(terminal);
    const kept = stored.servers[server];
    // Another process was first.
    if (kept !== undefined && "accessToken" in kept && kept.accessToken !== tokens.accessToken) {
      tokens = kept;
      if (tokens.expiresAt - marginMs > Date.now()) return true;
    }
    const next = await refreshed(server, tokens);
    if (next === null) return false;
    tokens = next;
    const { current, servers } = await readCredentials(terminal);
    await writeCredentials(terminal, { current, servers: { ...servers, [server]: next } });
    return true;
  }
  const renewOnce = (): Promise<boolean> => (renewing ??= renew().finally(() => (renewing = null)));

  return async (input, init) => {
    const send = (): Promise<Response> => {
      const headers = new Headers(init?.headers);
      headers.set("Authorization", `Bearer ${tokens.accessToken}`);
      return fetch(input, { ...init, headers });
    };
    if (tokens.expiresAt - marginMs <= Date.now()) await renewOnce();
    const response = await send();
    // It was revoked, or this clock is wrong.
    if (response.status !== 401 || !(await renewOnce())) return response;
    await response.body?.cancel();
    return send();
  };
}
