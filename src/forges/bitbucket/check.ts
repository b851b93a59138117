import { z } from "zod";
import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import { accountIdOf } from "../account-id.ts";
import type { ForgeSettings } from "../forge.ts";
import { anyAnswer, callForge, type ForgeAnswer } from "../http/http.ts";
import { notIdentified } from "../http/refusal.ts";
import { authorizationOf } from "./authorization.ts";

/** How problems name the API. */
const ownApi = {
  name: "Bitbucket Cloud's API",
  missing: "Bitbucket's API",
  address: "https://api.bitbucket.org/2.0",
  newToken: "Make a new token and send it: an API token with its account's e-mail address as username.",
};

type BitbucketSettings = Extract<ForgeSettings, { kind: "bitbucket" }>;

/** A scope, by its name in access tokens and OAuth, and by those in API tokens, which need both to read and to write. */
interface Scope {
  readonly name: string;
  /** Wider ones, which include it. */
  readonly includedIn: readonly string[];
  readonly ofApiTokens: readonly string[];
  readonly why: string;
  readonly essential: boolean;
}

/**
 * Scopes (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#scopes,
 * https://support.atlassian.com/bitbucket-cloud/docs/api-token-permissions/).
 */
const scopes: readonly Scope[] = [
  {
    name: "repository:write",
    includedIn: ["pullrequest:write"],
    ofApiTokens: ["read:repository:bitbucket", "write:repository:bitbucket"],
    why: "Sessions fetch repositories and push branches, and show their state at commits.",
    essential: true,
  },
  {
    name: "pullrequest:write",
    includedIn: [],
    ofApiTokens: ["read:pullrequest:bitbucket", "write:pullrequest:bitbucket"],
    why: "Sessions find, open and answer pull requests.",
    essential: true,
  },
  {
    name: "pipeline",
    includedIn: ["pipeline:write"],
    ofApiTokens: ["read:pipeline:bitbucket"],
    why: "The end of a failed pipeline's log can't be read without it.",
    essential: false,
  },
];
/** Bitbucket does not name an API token's user without it. Access tokens have no user, and no forks. */
const ownAccount: Scope = {
  name: "account",
  includedIn: ["account:write"],
  ofApiTokens: ["read:user:bitbucket"],
  why: "Bitbucket doesn't say whose the token is without it, so work can't go to a fork.",
  essential: false,
};

/** A refusal for a lack of scopes. */
const refusalSchema = z
  .object({ error: z.object({ detail: z.object({ granted: z.array(z.string()) }) }) })
  .transform(({ error }) => error.detail.granted);

/** A repository that does not exist, so that none is touched: Bitbucket checks the scopes first. */
const nowhere = "/repositories/offstage-scope-check/none/pullrequests";

/**
 * Asks Bitbucket Cloud whose a token is, and which scopes it has: answers name them in the header X-OAuth-Scopes, and refusals for a
 * lack of scopes in `error.detail.granted`.
 */
export async function checkBitbucket(settings: BitbucketSettings, signal: AbortSignal): Promise<ConnectionCheck> {
  const headers = authorizationOf(settings);
  const ask = (path: string): Promise<ForgeAnswer> =>
    callForge(`${settings.apiUrl}${path}`, { method: "GET", headers, signal, ...anyAnswer });
  const user = await ask("/user");
  const {
    display_name: name,
    nickname,
    username,
    ...ids
  } = (user.status === 200 ? (user.body ?? {}) : {}) as OwnAccount;
  const account = [username, nickname, name].find((each) => typeof each === "string") ?? null;
  if (user.status === 401 || (user.status !== 200 && user.status !== 403 && user.status !== 404))
    return { account: null, problems: [notIdentified(user, ownApi)] };
  const other = grantedIn(user) === null ? await ask(nowhere) : null;
  if (other !== null && !isOfApi(other)) return { account: null, problems: [notIdentified(other, ownApi)] };
  if (user.status === 200 && account === null) return { account: null, problems: [notIdentified(user, ownApi)] };
  const granted = grantedIn(user) ?? (other === null ? null : grantedIn(other));
  const isAccount = settings.username !== undefined;
  const needed = isAccount ? [...scopes, ownAccount] : scopes;
  const accountId = accountIdOf(ids.uuid ?? ids.account_id);
  return {
    account,
    accountId,
    problems: granted === null ? [] : needed.flatMap((scope) => lackOf(scope, granted, isAccount)),
  };
}

interface OwnAccount {
  readonly uuid?: string;
  readonly account_id?: string;
  readonly display_name?: string;
  readonly nickname?: string;
  readonly username?: string;
}

/** The scopes that an answer names; null: it names none. */
function grantedIn({ headers, body }: ForgeAnswer): readonly string[] | null {
  const named = headers.get("x-oauth-scopes");
  if (named !== null) return named.split(/[\s,]+/u).filter((scope) => scope !== "");
  return refusalSchema.safeParse(body).data ?? null;
}

/** Whether it is the API's answer about a repository that does not exist, or for a lack of scopes. */
function isOfApi(answer: ForgeAnswer): boolean {
  const { error } = (answer.body ?? {}) as { readonly error?: unknown };
  return grantedIn(answer) !== null || (answer.status === 404 && typeof error === "object");
}

/** The problem of a missing scope, in the names of the token's kind. */
function lackOf(
  { name, includedIn, ofApiTokens, why, essential }: Scope,
  granted: readonly string[],
  isAccount: boolean,
): ConnectionProblem[] {
  if ([name, ...includedIn].some((scope) => granted.includes(scope))) return [];
  const isApiToken = isAccount || granted.some((scope) => scope.endsWith(":bitbucket"));
  const missing = isApiToken ? ofApiTokens.filter((scope) => !granted.includes(scope)) : [name];
  const remedy = "Make a new token with the scope: Bitbucket can't add one to a token.";
  return missing.map((each) => ({ missing: each, why, remedy, essential }));
}
