import type { IncomingMessage, ServerResponse } from "node:http";
import { text as readText } from "node:stream/consumers";
import type { Answer, ApiRequest } from "./api-request.ts";
import { answerAboutCredential } from "./credentials-api.ts";
import { answerAsGitea, refusedByGitea } from "./gitea-api.ts";
import { answerAsGitHub, refusedByGitHub } from "./github-api.ts";
import { convertManifest } from "./github-manifest.ts";
import { isAppToken, newInstallationToken } from "./github-app.ts";
import { installationShape } from "./github-shapes.ts";
import { tokenUser, type ApiFailure, type ForgeState } from "./state.ts";

/** The part of GitHub's API and of Gitea's that Offstage calls. */
export async function serveApi(
  state: ForgeState,
  pathname: string,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [, version, owner = "", name = "", path = ""] =
    /^\/api\/(v3|v1)\/(?:repos\/([^/]+)\/([^/]+))?(\/?.*)$/u.exec(pathname) ?? [];
  const text = await readText(request);
  const method = request.method ?? "GET";
  state.asked.push(`${method} ${pathname}`);
  const answer = answerOf(state, version === "v1", {
    place: { webUrl: state.url, owner, name },
    method,
    path,
    query,
    token: (request.headers.authorization ?? "").replace(/^(?:Bearer|token) /u, ""),
    body: text === "" ? {} : (JSON.parse(text) as Record<string, string>),
  });
  if (answer.status === null) response.destroy();
  else
    response
      .writeHead(answer.status, {
        "Content-Type": "application/json; charset=utf-8",
        ...(version === "v3" && state.scopes !== null && { "X-OAuth-Scopes": state.scopes }),
        ...answer.headers,
      })
      .end(JSON.stringify(answer.body));
}

/** Whether a path of the API is for the look at a repository's rights. */
export function isAboutRights(path: string): boolean {
  return path === "" || path.startsWith("/rules/") || path.startsWith("/branches/");
}

function answerOf(state: ForgeState, isGitea: boolean, request: ApiRequest): Answer {
  const { place, path, method } = request;
  const refused = (status: number, words: string): Answer =>
    isGitea ? refusedByGitea(state, status, words) : refusedByGitHub(status, words);
  const limited = takeFailure(state, path);
  if (limited !== null) return limited;
  const conversion = /^app-manifests\/([^/]+)\/conversions$/u.exec(path);
  if (conversion !== null) return convertManifest(state, conversion[1] ?? "");
  const aboutCredential = answerAboutCredential(state, isGitea, request);
  if (aboutCredential !== null) return aboutCredential;
  if (path.endsWith("/access_tokens") || path === "/installation") return answerApp(state, request);
  if (!state.tokens.has(request.token)) return refused(401, isGitea ? "token is required" : "Bad credentials");
  if (isGitea && path === "user") return { status: 200, body: { id: 2, login: tokenUser } };
  const pulls = state.pulls.get(`${place.owner}/${place.name}`);
  if (pulls === undefined) return refused(404, isGitea ? "The target couldn't be found." : "Not Found");
  const answer = isGitea ? answerAsGitea(state, request, pulls) : answerAsGitHub(state, request, pulls);
  if (method !== "POST" || state.failures[0]?.kind !== "loseAnswer") return answer;
  state.failures.shift();
  return { status: null };
}

/** The next failure as an answer, if it is for this request; null if not. */
function takeFailure({ failures }: ForgeState, path: string): Answer | null {
  const [failure] = failures;
  const answer = failure === undefined ? null : failureAnswer(failure, path);
  if (answer !== null) failures.shift();
  return answer;
}

function failureAnswer(failure: ApiFailure, path: string): Answer | null {
  const isMeant = isAboutRights(path) === (failure.kind === "status" && failure.at === "repository");
  if (!isMeant) return null;
  switch (failure.kind) {
    case "status":
      return refusedByGitHub(failure.status, "Server Error");
    case "primaryLimit": {
      const reset = Math.ceil(Date.now() / 1_000) + failure.resetInSeconds;
      const refusal = refusedByGitHub(failure.status ?? 403, "API rate limit exceeded for user ID 1.");
      const headers = { "X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": String(reset) };
      return { ...refusal, headers };
    }
    case "secondaryLimit": {
      const words =
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. For more on scraping GitHub and how it may affect your rights, please review our Terms of Service.";
      const refusal = refusedByGitHub(403, words);
      const { retryAfterSeconds } = failure;
      return retryAfterSeconds === null
        ? refusal
        : { ...refusal, headers: { "Retry-After": String(retryAfterSeconds) } };
    }
    default:
      return null;
  }
}

/** A GitHub App's two calls, with its own token: which installation is it, and a token of that one. */
function answerApp(state: ForgeState, { place, path, token }: ApiRequest): Answer {
  if (state.app === null || !isAppToken(token, state.app))
    return refusedByGitHub(401, "A JSON web token could not be decoded");
  if (path === "/installation") return { status: 200, body: installationShape(place, state.app.id) };
  const given = newInstallationToken();
  state.tokens.add(given.token);
  return { status: 201, body: given };
}
