import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import { accountIdOf } from "../account-id.ts";
import type { ForgeSettings } from "../forge.ts";
import { anyAnswer, callForge, type ForgeAnswer } from "../http/http.ts";
import { notIdentified } from "../http/refusal.ts";

/** How problems name the API. */
const ownApi = {
  name: "Bitbucket Data Center's API",
  missing: "Bitbucket's API",
  address: "https://<server>/rest/api/latest",
  newToken: "Make a new HTTP access token and send it.",
};

type DataCenterSettings = Extract<ForgeSettings, { kind: "bitbucketDataCenter" }>;

/**
 * Asks Bitbucket Data Center whose a token is, which each answer has in the header X-AUSERNAME, and whether there is a repository to
 * which it may write: a token's permissions (https://confluence.atlassian.com/bitbucketserver/http-access-tokens-939515499.html) can be
 * listed by an administrator alone.
 */
export async function checkBitbucketDataCenter(
  settings: DataCenterSettings,
  signal: AbortSignal,
): Promise<ConnectionCheck> {
  const headers: Record<string, string> = { Authorization: `Bearer ${settings.token ?? ""}` };
  const ask = (permission: string): Promise<ForgeAnswer> =>
    callForge(`${settings.apiUrl}/repos?permission=${permission}&limit=1`, {
      method: "GET",
      headers,
      signal,
      ...anyAnswer,
    });
  const writable = await ask("REPO_WRITE");
  const user = writable.headers.get("x-ausername");
  if (!isList(writable)) return { account: null, problems: [notIdentified(writable, ownApi)] };
  // Without a valid token public repositories are listed.
  if (user === null) return { account: null, problems: [notIdentified({ ...writable, status: 401 }, ownApi)] };
  const account = decoded(user);
  const accountId = accountIdOf(writable.headers.get("x-auserid"));
  if (countOf(writable) > 0) return { account, accountId, problems: [] };
  const readable = await ask("REPO_READ");
  return { account, accountId, problems: [countOf(readable) > 0 ? withoutWrite : withoutRepository] };
}

const withoutWrite: ConnectionProblem = {
  missing: "Repository write",
  why: "Sessions push branches, and open and answer pull requests; the token may only read.",
  remedy: "Make an HTTP access token with Repository write, of a person who may write to a repository.",
  essential: true,
};

const withoutRepository: ConnectionProblem = {
  missing: "access to a repository",
  why: "The token sees no repository.",
  remedy: "Give its user, or its project, a repository with the permission to write.",
  essential: false,
};

function isList({ status, body }: ForgeAnswer): boolean {
  return status === 200 && Array.isArray((body as { values?: unknown } | null)?.values);
}

function countOf(answer: ForgeAnswer): number {
  return isList(answer) ? (answer.body as { readonly values: readonly unknown[] }).values.length : 0;
}

/** The header is percent-encoded. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
