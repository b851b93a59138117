import { idOf } from "./feedback.ts";
import type { Answer, ApiRequest } from "./api-request.ts";
import { refusedByGitea } from "./gitea-api.ts";
import { refusedByGitHub } from "./github-api.ts";
import { isAppToken } from "./github-app.ts";
import { tokenUser, type ForgeState } from "./state.ts";

/**
 * What a forge answers about a credential itself, and what it refuses because of the credential's scopes before it looks at anything
 * else; null: the request is about something else, and the credential may make it.
 */
export function answerAboutCredential(
  state: ForgeState,
  kind: "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter",
  request: ApiRequest,
): Answer | null {
  if (kind === "gitlab") return answerOfGitLab(state, request);
  if (kind === "bitbucket") return answerOfBitbucket(state, request);
  // It shows a token's permissions only to administrators.
  if (kind === "bitbucketDataCenter") return null;
  return kind === "gitea" ? answerOfGitea(state, request) : answerOfGitHub(state, request);
}

function answerOfGitLab(state: ForgeState, { path, token }: ApiRequest): Answer | null {
  if (path !== "personal_access_tokens/self" || !state.tokens.has(token)) return null;
  const { scopes, expiresOn } = state.gitLabToken;
  return {
    status: 200,
    body: { id: 1, name: "offstage", revoked: false, active: true, user_id: 2, scopes, expires_at: expiresOn },
  };
}

/** Bitbucket names the scopes that a token has in its refusal. */
function answerOfBitbucket({ tokens, bitbucketScopes: granted }: ForgeState, request: ApiRequest): Answer | null {
  const { path, method, token } = request;
  if (!tokens.has(token) || granted === null) return null;
  const isWrite = method !== "GET";
  const noun = path === "user" ? "account" : (/pullrequest|pipeline/u.exec(path)?.[0] ?? "repository");
  const accepted = [
    isWrite ? `${noun}:write` : noun,
    `${noun}:write`,
    ...(noun === "repository" ? ["pullrequest:write"] : []),
    `${isWrite ? "write" : "read"}:${noun === "account" ? "user" : noun}:bitbucket`,
  ];
  if (accepted.some((scope) => granted.includes(scope))) return null;
  const message = "Your credentials lack one or more required privilege scopes.";
  return {
    status: 403,
    body: { type: "error", error: { message, detail: { required: accepted.slice(0, 1), granted } } },
  };
}

function answerOfGitHub(state: ForgeState, { path, method, token, body, place }: ApiRequest): Answer | null {
  if (path === "app" || path.startsWith("app/installations")) return answerAboutApp(state, path, token);
  if (!state.tokens.has(token)) return null;
  if (path === "user") return { status: 200, body: { login: state.asking, id: idOf(state.asking), type: "User" } };
  if (path === "user/repos") {
    const repositories = [...state.pulls.keys()].map((name) => {
      const [owner = "", repository = ""] = name.split("/");
      return { full_name: `${owner}/${repository}`, archived: false, permissions: { push: true, pull: true } };
    });
    return { status: 200, body: repositories };
  }
  // A fine-grained token: its permission comes before the fields.
  const places = { "/git/refs": "contents", "/pulls": "pull_requests", "/labels": "issues", "/statuses": "statuses" };
  const needed = (places as Readonly<Record<string, string>>)[path.replace(/^(\/statuses)\/0{40}$/u, "$1")];
  if (method !== "POST" || needed === undefined) return null;
  if (state.granted !== null && !state.granted.includes(needed)) {
    return refusedByGitHub(403, "Resource not accessible by personal access token");
  }
  if (Object.keys(body).length > 0) return null;
  if (!state.pulls.has(`${place.owner}/${place.name}`)) return refusedByGitHub(404, "Not Found");
  return refusedByGitHub(422, 'Invalid request.\n\n"name" wasn\'t supplied.');
}

function answerAboutApp(state: ForgeState, path: string, token: string): Answer | null {
  // An installation's token is asked for below the same path.
  if (path.endsWith("/access_tokens")) return null;
  const { app } = state;
  if (app === null || !isAppToken(token, app)) return refusedByGitHub(401, "A JSON web token could not be decoded");
  const { permissions = {}, events = [], installations = [] } = app;
  if (path === "app") {
    const htmlUrl = `${state.url}/apps/offstage-${app.id}`;
    const owner = { login: tokenUser, id: 2 };
    return {
      status: 200,
      body: { id: app.id, slug: `offstage-${app.id}`, name: "Offstage", owner, html_url: htmlUrl, permissions, events },
    };
  }
  const body = installations.map((each, index) => ({
    id: index + 1,
    app_id: app.id,
    account: { login: each.account, id: index + 10 },
    permissions: each.permissions ?? permissions,
    suspended_at: each.suspended === true ? "2026-01-01T00:00:00Z" : null,
  }));
  return { status: 200, body };
}

/** Gitea looks at a token's scopes before it looks for what the request is about (routers/api/v1/api.go, tokenRequiresScopes). */
function answerOfGitea(state: ForgeState, { path, method, token }: ApiRequest): Answer | null {
  if (!state.tokens.has(token) || state.giteaScopes === null) return null;
  const category = path === "user" ? "user" : path.startsWith("/issues") ? "issue" : "repository";
  const level = method === "GET" ? "read" : "write";
  const accepted = [`write:${category}`, ...(level === "read" ? [`read:${category}`] : []), "all"];
  if (accepted.some((scope) => state.giteaScopes?.includes(scope) === true)) return null;
  const scopes = state.giteaScopes.join(",");
  const words = `token does not have at least one of required scope(s), required=[${level}:${category}], token scope=${scopes}`;
  return refusedByGitea(state, 403, words);
}
