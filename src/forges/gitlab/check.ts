import { z } from "zod";
import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import { accountIdOf } from "../account-id.ts";
import type { ForgeSettings } from "../forge.ts";
import { anyAnswer, callForge, type ForgeAnswer } from "../http/http.ts";
import { notIdentified } from "../http/refusal.ts";

/** How problems name the API. */
const ownApi = { name: "GitLab's API", address: "https://<server>/api/v4" };

type GitLabSettings = Extract<ForgeSettings, { kind: "gitlab" }>;

/** Fields used of a token; what is not as GitLab documents it is left out. */
const tokenSchema = z
  .object({
    scopes: z.array(z.string()).optional().catch(undefined),
    expires_at: z.string().max(100).nullish().catch(null),
  })
  .catch({});

/** Days before a token's end at which its owner is warned. */
const soonDays = 14;
const dayMs = 24 * 60 * 60_000;

/**
 * Asks GitLab whose a token is, which scopes it has and when it ends
 * (https://docs.gitlab.com/api/personal_access_tokens/#self-inform; tokens of projects and groups are asked for the same way).
 * @param now ms since the epoch
 */
export async function checkGitLab(
  settings: GitLabSettings,
  signal: AbortSignal,
  now: () => number = Date.now,
): Promise<ConnectionCheck> {
  const headers = { Authorization: `Bearer ${settings.token ?? ""}` };
  const ask = (path: string): Promise<ForgeAnswer> =>
    callForge(`${settings.apiUrl}${path}`, { method: "GET", headers, signal, ...anyAnswer });
  const user = await ask("/user");
  const { id, username } = (user.body ?? {}) as { id?: unknown; username?: unknown };
  if (user.status !== 200 || typeof username !== "string")
    return { account: null, problems: [notIdentified(user, ownApi)] };
  // An OAuth token is none of these, and GitLab answers 400 or 404: its scopes are unknown.
  const token = await ask("/personal_access_tokens/self");
  const accountId = accountIdOf(id);
  if (token.status !== 200) return { account: username, accountId, problems: [] };
  const { scopes, expires_at: endsOn } = tokenSchema.parse(token.body);
  return {
    account: username,
    accountId,
    problems: [
      ...(scopes === undefined || scopes.includes("api") ? [] : [withoutScope]),
      ...(endsOn != null && Date.parse(endsOn) - now() < soonDays * dayMs ? [endsSoon(endsOn)] : []),
    ],
  };
}

const withoutScope: ConnectionProblem = {
  missing: "api",
  why: "Sessions push branches, and find, open and answer merge requests.",
  remedy: "Make a new token with the scope: GitLab can't add one to a token.",
  essential: true,
};

function endsSoon(endsOn: string): ConnectionProblem {
  const why = `GitLab ends the token on ${endsOn}, and sessions can do nothing with it afterwards.`;
  return { missing: "a token that lasts", why, remedy: "Rotate it in GitLab and send the new one.", essential: false };
}
