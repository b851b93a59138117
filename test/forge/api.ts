import type { IncomingMessage, ServerResponse } from "node:http";
import { text as readText } from "node:stream/consumers";
import type { Answer, ApiRequest } from "./api-request.ts";
import { answerAboutCredential } from "./credentials-api.ts";
import { answerAsGitea, refusedByGitea } from "./gitea-api.ts";
import { answerAsGitHub, refusedByGitHub } from "./github-api.ts";
import { convertManifest } from "./github-manifest.ts";
import { isAppToken, newInstallationToken } from "./github-app.ts";
import { installationShape } from "./github-shapes.ts";
import { answerAsGitLab, projectIn, refusedByGitLab, showUser } from "./gitlab-api.ts";
import { tokenUser, type ApiFailure, type ForgeState, type KeptPullRequest } from "./state.ts";

/** How a forge speaks. */
interface Dialect {
  readonly kind: "github" | "gitlab" | "gitea";
  readonly refused: (state: ForgeState, status: number, words: string) => Answer;
  readonly badToken: string;
  readonly unknown: string;
  readonly answer: (state: ForgeState, request: ApiRequest, pulls: KeptPullRequest[]) => Answer;
}

const dialects: Readonly<Record<string, Dialect>> = {
  v3: {
    kind: "github",
    refused: (_, status, words) => refusedByGitHub(status, words),
    badToken: "Bad credentials",
    unknown: "Not Found",
    answer: answerAsGitHub,
  },
  v4: {
    kind: "gitlab",
    refused: (_, status, words) => refusedByGitLab(status, words),
    badToken: "401 Unauthorized",
    unknown: "404 Project Not Found",
    answer: answerAsGitLab,
  },
  v1: {
    kind: "gitea",
    refused: refusedByGitea,
    badToken: "token is required",
    unknown: "The target couldn't be found.",
    answer: answerAsGitea,
  },
};

/** The part of GitHub's API, of GitLab's and of Gitea's that Offstage calls. */
export async function serveApi(
  state: ForgeState,
  pathname: string,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [, version = "v3", below = ""] = /^\/api\/(v\d)\/(.*)$/u.exec(pathname) ?? [];
  const { owner, name, path } = (version === "v4" ? projectIn(pathname) : repositoryIn(below)) ?? {
    owner: "",
    name: "",
    path: below,
  };
  const text = await readText(request);
  const method = request.method ?? "GET";
  state.asked.push(`${method} ${pathname}`);
  const answer = answerOf(state, dialects[version], {
    place: { webUrl: state.url, owner, name },
    method,
    path,
    query,
    token: (request.headers.authorization ?? "").replace(/^(?:Bearer|token) /u, ""),
    body: text === "" ? {} : (JSON.parse(text) as Record<string, string>),
  });
  if (answer.status === null) response.destroy();
  else if (answer.text !== undefined)
    response.writeHead(answer.status, { "Content-Type": "text/plain", ...answer.headers }).end(answer.text);
  else
    response
      .writeHead(answer.status, {
        "Content-Type": "application/json; charset=utf-8",
        ...(version === "v3" && state.scopes !== null && { "X-OAuth-Scopes": state.scopes }),
        ...answer.headers,
      })
      .end(JSON.stringify(answer.body));
}

function repositoryIn(below: string): { owner: string; name: string; path: string } | null {
  const [, owner = "", name = "", path = ""] = /^repos\/([^/]+)\/([^/]+)(.*)$/u.exec(below) ?? [];
  return name === "" ? null : { owner, name, path };
}

/** Whether a path of the API is for the look at a repository's rights. */
export function isAboutRights(path: string): boolean {
  return path === "" || /^\/(?:rules\/|branches\/|protected_branches)/u.test(path);
}

function answerOf(state: ForgeState, dialect: Dialect | undefined, request: ApiRequest): Answer {
  const { place, path, method } = request;
  if (dialect === undefined) return refusedByGitHub(404, "Not Found");
  const limited = takeFailure(state, path);
  if (limited !== null) return limited;
  const conversion = /^app-manifests\/([^/]+)\/conversions$/u.exec(path);
  if (conversion !== null) return convertManifest(state, conversion[1] ?? "");
  const aboutCredential = answerAboutCredential(state, dialect.kind, request);
  if (aboutCredential !== null) return aboutCredential;
  if (path.endsWith("/access_tokens") || path === "/installation") return answerApp(state, request);
  if (!state.tokens.has(request.token)) return dialect.refused(state, 401, dialect.badToken);
  if (path === "user")
    return dialect === dialects["v4"] ? showUser(state) : { status: 200, body: { id: 2, login: tokenUser } };
  const pulls = state.pulls.get(`${place.owner}/${place.name}`);
  if (pulls === undefined) return dialect.refused(state, 404, dialect.unknown);
  const answer = dialect.answer(state, request, pulls);
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
