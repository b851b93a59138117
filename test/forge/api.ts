import type { IncomingMessage, ServerResponse } from "node:http";
import { text as readText } from "node:stream/consumers";
import type { Answer, ApiRequest } from "./api-request.ts";
import { unknownToAzure, refusedByAzure } from "./azure-answers.ts";
import { answerAsAzure, answerAsCollection, azureRequestIn, refusedToken } from "./azure-api.ts";
import { answerAboutCredential } from "./credentials-api.ts";
import { refusedByBitbucket } from "./bitbucket-answers.ts";
import { answerAboutBitbucketUser, answerAsBitbucket, bitbucketRepositoryIn } from "./bitbucket-api.ts";
import { refusedByDataCenter } from "./data-center-answers.ts";
import { answerAsDataCenter, answerOfDataCenter, dataCenterRepositoryIn } from "./data-center-api.ts";
import { answerLookOfAzure, answersToLooks } from "./browsing.ts";
import { answerAsGitea, refusedByGitea } from "./gitea-api.ts";
import { idOf } from "./feedback.ts";
import { answerGraphQL, type GraphQLRequest } from "./github-graphql.ts";
import { answerAsGitHub, refusedByGitHub } from "./github-api.ts";
import { convertManifest } from "./github-manifest.ts";
import { isAppToken, newInstallationToken } from "./github-app.ts";
import { installationShape } from "./github-shapes.ts";
import { answerAsGitLab, projectIn, refusedByGitLab, showUser } from "./gitlab-api.ts";
import { listGitLabUsers } from "./pull-request-fields.ts";
import { loginOf, type ApiFailure, type ForgeState, type KeptPullRequest, type Person, type Place } from "./state.ts";

/** How a forge speaks. */
interface Dialect {
  readonly kind: "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter";
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
  "2.0": {
    kind: "bitbucket",
    refused: (_, status, words) => refusedByBitbucket(status, words),
    badToken: "Token is invalid, expired, or not supported for this endpoint.",
    unknown: "Repository not found",
    answer: answerAsBitbucket,
  },
  rest: {
    kind: "bitbucketDataCenter",
    refused: (_, status, words) => refusedByDataCenter(status, words, null),
    badToken: "Authentication failed. Please check your credentials and try again.",
    unknown: "Repository does not exist.",
    answer: answerAsDataCenter,
  },
};

/** Whether a path is one of an API. */
export const isApi = (pathname: string): boolean => /^\/(?:api|2\.0|rest)\/|\/_apis\//u.test(pathname);

/** The part of GitHub's API, of GitLab's, Gitea's, Bitbucket's and that of Azure DevOps that Offstage calls. */
export async function serveApi(
  state: ForgeState,
  pathname: string,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (pathname.includes("/_apis/")) return serveAzure(state, pathname, query, request, response);
  if (pathname === "/api/graphql") return serveGraphQL(state, request, response);
  const [, version = "v3", below = ""] = /^\/(?:api\/)?(v\d|2\.0|rest)\/([^]*)$/u.exec(pathname) ?? [];
  const placeIn = { "2.0": bitbucketRepositoryIn, rest: dataCenterRepositoryIn }[version] ?? repositoryIn;
  const { owner, name, path } = (version === "v4" ? projectIn(pathname) : placeIn(below)) ?? {
    owner: "",
    name: "",
    path: below,
  };
  const text = await readText(request);
  const method = request.method ?? "GET";
  state.asked.push(`${method} ${pathname}`);
  const login = noteAsking(state, tokenIn(request.headers.authorization ?? "").token, `${method} ${pathname}`);
  const answer = answerOf(state, dialects[version], {
    place: { webUrl: state.url, owner, name },
    method,
    path,
    query,
    ...tokenIn(request.headers.authorization ?? ""),
    body: text === "" ? {} : (JSON.parse(text) as Record<string, string>),
  });
  send(response, answer, {
    ...(version === "2.0" && state.bitbucketScopes !== null && { "X-OAuth-Scopes": state.bitbucketScopes.join(", ") }),
    ...(version === "rest" && answer.status !== 401 && { "X-AUSERID": String(idOf(login)), "X-AUSERNAME": login }),
    ...(version === "v3" && state.scopes !== null && { "X-OAuth-Scopes": state.scopes }),
  });
}

function send(response: ServerResponse, answer: Answer, headers: Readonly<Record<string, string>> = {}): void {
  if (answer.status === null) response.destroy();
  else if (answer.text !== undefined)
    response.writeHead(answer.status, { "Content-Type": "text/plain", ...answer.headers }).end(answer.text);
  else
    response
      .writeHead(answer.status, { "Content-Type": "application/json; charset=utf-8", ...headers, ...answer.headers })
      .end(JSON.stringify(answer.body));
}

/** Notes who asks for what. @returns who it is */
function noteAsking(state: ForgeState, token: string, what: string): string {
  state.people.get(token)?.asked.push(what);
  state.asking = loginOf(state, token);
  return state.asking;
}

/**
 * The refusal of a person who may not open a pull request; null: they may, or request something else. A person who gets
 * the answer that the repository does not exist sees nothing of it.
 */
function refusalOfPerson(state: ForgeState, { method, path, token, body }: ApiRequest): Person["refusal"] {
  const { refusal = null } = state.people.get(token) ?? {};
  if (refusal?.status === 404) return refusal;
  const isOpening = method === "POST" && /\/(?:pulls|merge_requests|pullrequests|pull-requests)$/u.test(path);
  // A request without fields tries what the token may.
  return isOpening && Object.keys(body).length > 0 ? refusal : null;
}

/** The token of a request, which Bitbucket Cloud takes as a password too. */
function tokenIn(authorization: string): Pick<ApiRequest, "token" | "isBasic"> {
  const isBasic = authorization.startsWith("Basic ");
  if (!isBasic) return { token: authorization.replace(/^(?:Bearer|token) /u, ""), isBasic };
  const basic = Buffer.from(authorization.slice("Basic ".length), "base64").toString();
  return { token: basic.slice(basic.indexOf(":") + 1), isBasic };
}

/** GitHub's other API, beside that of an Enterprise Server. */
async function serveGraphQL(state: ForgeState, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = await readText(request);
  state.asked.push("POST /api/graphql");
  const { token } = tokenIn(request.headers.authorization ?? "");
  const limited = limitOfGraphQL(takeFailure(state, { path: "/graphql", place: null }));
  const refused = state.tokens.has(token) ? null : refusedByGitHub(401, "Bad credentials");
  send(response, limited ?? refused ?? answerGraphQL(state, JSON.parse(text) as GraphQLRequest));
}

/**
 * An answer for the limit of requests in an hour as GraphQL gives it: with status 200
 * (https://docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api). Others stay.
 */
function limitOfGraphQL(answer: Answer | null): Answer | null {
  if (answer?.headers?.["X-RateLimit-Remaining"] !== "0") return answer;
  const { message } = answer.body as { readonly message: string };
  return { status: 200, headers: answer.headers, body: { errors: [{ type: "RATE_LIMITED", message }] } };
}

/** Azure DevOps has its API beside its repositories, and a token as a password. */
async function serveAzure(
  state: ForgeState,
  pathname: string,
  query: URLSearchParams,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const text = await readText(incoming);
  const method = incoming.method ?? "GET";
  state.asked.push(`${method} ${pathname}`);
  const basic = (incoming.headers.authorization ?? "").replace(/^Basic /u, "");
  const { isInRepository, path, place } = azureRequestIn(state, pathname);
  const body = text === "" ? {} : (JSON.parse(text) as Record<string, string>);
  const token = Buffer.from(basic, "base64")
    .toString()
    .replace(/^[^:]*:/u, "");
  const request: ApiRequest = { place, method, path, query, token, isBasic: true, body };
  noteAsking(state, token, `${method} ${pathname}`);
  send(response, answerAzure(state, pathname, request, isInRepository));
}

function answerAzure(state: ForgeState, pathname: string, request: ApiRequest, isInRepository: boolean): Answer {
  const limited = takeFailure(state, request);
  if (limited !== null) return limited;
  const refused = refusedToken(state, request, isInRepository);
  if (refused !== null) return refused;
  const refusal = refusalOfPerson(state, request);
  if (refusal !== null) return refusedByAzure(refusal.status, refusal.words);
  if (!request.query.has("api-version")) return refusedByAzure(400, "No api-version was supplied.");
  const pulls = state.pulls.get(`${request.place.owner}/${request.place.name}`);
  const unknown = refusedByAzure(404, unknownToAzure, "GitRepositoryNotFoundException");
  const shown = pulls === undefined && isInRepository ? null : answerLookOfAzure(state, pathname, request);
  if (shown !== null) return shown;
  const answer = isInRepository
    ? pulls === undefined
      ? unknown
      : answerAsAzure(state, request, pulls)
    : (answerAsCollection(state, pathname, request) ?? unknown);
  return request.method !== "POST" || isAboutRights(request.path)
    ? answer
    : (lostAnswer(state, request.path) ?? answer);
}

function repositoryIn(below: string): { owner: string; name: string; path: string } | null {
  const [, owner = "", name = "", path = ""] = /^repos\/([^/]+)\/([^/]+)(.*)$/u.exec(below) ?? [];
  return name === "" ? null : { owner, name, path };
}

/** Whether a path of the API is for the look at a repository's rights. */
export function isAboutRights(path: string): boolean {
  return path === "" || /^(?:\/(?:rules\/|branches\/|protected_branches|approvals$)|security\/)/u.test(path);
}

function answerOf(state: ForgeState, dialect: Dialect | undefined, request: ApiRequest): Answer {
  const { place, path, method } = request;
  if (dialect === undefined) return refusedByGitHub(404, "Not Found");
  const limited = takeFailure(state, request);
  if (limited !== null) return limited;
  const conversion = /^app-manifests\/([^/]+)\/conversions$/u.exec(path);
  if (conversion !== null) return convertManifest(state, conversion[1] ?? "");
  const isList = path === "user/repos" && request.query.has("page");
  const aboutCredential = isList ? null : answerAboutCredential(state, dialect.kind, request);
  if (aboutCredential !== null) return aboutCredential;
  if (path.endsWith("/access_tokens") || path === "/installation") return answerApp(state, request);
  if (!state.tokens.has(request.token)) return dialect.refused(state, 401, dialect.badToken);
  const isThere = !path.startsWith("/") || state.pulls.has(`${place.owner}/${place.name}`);
  const shown = method === "GET" && isThere ? answersToLooks[dialect.kind]({ state, request }) : null;
  if (shown !== null) return shown;
  const beside = { bitbucket: answerAboutBitbucketUser, bitbucketDataCenter: answerOfDataCenter } as const;
  const ofServer = dialect.kind in beside ? beside[dialect.kind as keyof typeof beside](state, request) : null;
  if (ofServer !== null) return ofServer;
  if (path === "users" && dialect === dialects["v4"]) return listGitLabUsers(state, request);
  if (path === "user")
    return dialect === dialects["v4"]
      ? showUser(state)
      : { status: 200, body: { id: idOf(state.asking), login: state.asking } };
  const pulls = state.pulls.get(`${place.owner}/${place.name}`);
  if (pulls === undefined) return dialect.refused(state, 404, dialect.unknown);
  const refusal = refusalOfPerson(state, request);
  if (refusal !== null) return dialect.refused(state, refusal.status, refusal.words);
  const answer = dialect.answer(state, request, pulls);
  return method === "POST" ? (lostAnswer(state, path) ?? answer) : answer;
}

/** What is answered if the next failure is that the answer to what was made is lost; null if it is not. */
function lostAnswer(state: ForgeState, path: string): Answer | null {
  const [failure] = state.failures;
  const isComment = /\/(?:comments|replies)$/u.test(path);
  if (failure?.kind !== "loseAnswer" || (failure.at === "comment" && !isComment)) return null;
  state.failures.shift();
  if (isComment) state.lostComments += 1;
  return failure.as === undefined ? { status: null } : { status: 201, text: failure.as };
}

/** The next failure as an answer, if it is for this request; null if not. */
function takeFailure(
  { failures }: ForgeState,
  { path, place }: Pick<ApiRequest, "path"> & { readonly place: Place | null },
): Answer | null {
  const [failure] = failures;
  const isOther = failure?.kind === "status" && failure.name !== undefined && failure.name !== place?.name;
  const answer = failure === undefined || isOther ? null : failureAnswer(failure, path);
  if (answer !== null) failures.shift();
  return answer;
}

function failureAnswer(failure: ApiFailure, path: string): Answer | null {
  const isMeant = isAboutRights(path) === (failure.kind === "status" && failure.at === "repository");
  if (!isMeant) return null;
  switch (failure.kind) {
    case "status":
      return failure.body === undefined
        ? refusedByGitHub(failure.status, "Server Error")
        : { status: failure.status, body: failure.body };
    case "page":
      return { status: 200, headers: { "Content-Type": "text/html" }, text: failure.text };
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
    return {
      ...refusedByGitHub(401, "'Expiration time' claim ('exp') is too far in the future"),
      headers: { Date: new Date(Date.now() + (state.app?.clockAheadMs ?? 0)).toUTCString() },
    };
  if (path === "/installation") return { status: 200, body: installationShape(place, state.app.id) };
  const given = newInstallationToken();
  if (state.app.knowsTokensAfterMs === undefined) state.tokens.add(given.token);
  else setTimeout(() => state.tokens.add(given.token), state.app.knowsTokensAfterMs);
  return { status: 201, body: given };
}
