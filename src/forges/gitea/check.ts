import type { ConnectionCheck, ConnectionProblem } from "../../domain/repositories/connection.ts";
import { accountIdOf } from "../account-id.ts";
import type { ForgeSettings } from "../forge.ts";
import { anyAnswer, callForge, type ForgeAnswer } from "../http/http.ts";
import { notIdentified, wordsOf } from "../http/refusal.ts";

/** How problems name the API. */
const ownApi = { name: "Gitea's API", address: "https://<server>/api/v1" };

type GiteaSettings = Extract<ForgeSettings, { kind: "gitea" }>;

/** Scopes of a token (https://docs.gitea.com/development/oauth2-provider#scopes), and what for. */
const scopes = {
  "write:repository": {
    why: "Sessions push branches, and find and open pull requests.",
    essential: true,
  },
  "write:issue": {
    why: "Issues and pull requests are answered in comments.",
    essential: false,
  },
  "read:user": {
    why: "Gitea doesn't say whose the token is without it, so work can't go to a fork.",
    essential: false,
  },
} as const;

/**
 * A repository that does not exist, so that nothing can be changed in it: Gitea checks a token's scopes before it
 * searches for the repository, and answers 403 for a scope and 404 for the repository.
 */
const nowhere = "/repos/offstage-scope-check/none";

/** Asks Gitea or Forgejo whose a token is, and which scopes it has. */
export async function checkGitea(settings: GiteaSettings, signal: AbortSignal): Promise<ConnectionCheck> {
  const headers: Record<string, string> = { Authorization: `token ${settings.token ?? ""}` };
  const ask = (method: "GET" | "POST", path: string): Promise<ForgeAnswer> =>
    callForge(`${settings.apiUrl}${path}`, {
      method,
      headers,
      signal,
      ...anyAnswer,
      ...(method === "POST" && { body: {} }),
    });
  const user = await ask("GET", "/user");
  const { id, login } = (user.body ?? {}) as { id?: unknown; login?: unknown };
  const isKnown = user.status === 200 && typeof login === "string";
  if (!isKnown && !lacksScope(user)) return { account: null, problems: [notIdentified(user, ownApi)] };
  const repository = await ask("POST", `${nowhere}/pulls`);
  const issue = await ask("POST", `${nowhere}/issues`);
  return {
    account: isKnown ? login : null,
    accountId: accountIdOf(id),
    problems: [
      ...(lacksScope(repository) ? [problemOf("write:repository")] : []),
      ...(lacksScope(issue) ? [problemOf("write:issue")] : []),
      ...(isKnown ? [] : [problemOf("read:user")]),
    ],
  };
}

/** Whether a 403 is about the token's scopes: `token does not have at least one of required scope(s)`. */
function lacksScope({ status, body }: ForgeAnswer): boolean {
  return status === 403 && /scope/iu.test(wordsOf(body));
}

function problemOf(missing: keyof typeof scopes): ConnectionProblem {
  return { missing, ...scopes[missing], remedy: "Make a new token with the scope: Gitea can't add one to a token." };
}
