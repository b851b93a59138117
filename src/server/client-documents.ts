import type { Config } from "../config/config.ts";
import { createGuardedFetch } from "../gateway/egress/guarded-fetch.ts";

/** A person waits for the page. */
const limitMs = 5_000;
/** Most characters of a document; the draft recommends 5 KB. */
const mostCharacters = 64 * 1024;

/**
 * Makes the reader of documents in which programs describe themselves
 * (draft-ietf-oauth-client-id-metadata-document-00). The address is untrusted, so only public hosts are contacted, by
 * https, and those in private networks that the operator lists.
 * @returns a function that reads JSON; it throws if there is none
 */
export function clientDocumentReader({ programHosts, outbound }: Pick<Config, "programHosts" | "outbound">) {
  const reach = createGuardedFetch({
    privateHosts: programHosts,
    setting: "OFFSTAGE_PROGRAM_HOSTS",
    proxies: outbound.proxies,
  });
  return async (url: string): Promise<unknown> => {
    const headers = { accept: "application/json" };
    const response = await reach.fetch(url, { headers, signal: AbortSignal.timeout(limitMs) });
    // A redirect is none of a document's (section 4).
    if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
    const text = await response.text();
    if (text.length > mostCharacters) throw new Error(`${url} is larger than a program's document`);
    return JSON.parse(text) as unknown;
  };
}
