import { execFile } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { promisify } from "node:util";
import { isAppToken, newInstallationToken } from "./github-app.ts";
import { installationShape, pullRequestShape, type Place } from "./github-shapes.ts";
import { mergeableOf } from "./mergeable.ts";
import { gitEnvironment, type ForgeState, type TestPullRequest } from "./state.ts";

/** An answer of the API; no status where the connection is cut instead. */
interface Answer {
  readonly status: number | null;
  readonly body?: unknown;
}

interface ApiRequest {
  readonly place: Place;
  readonly isGitea: boolean;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly token: string;
  readonly body: Record<string, string>;
}

const documentation = "https://docs.github.com/rest";
const refused = (status: number, message: string): Answer => ({
  status,
  body: { message, documentation_url: documentation, status: String(status) },
});

/** The part of GitHub's API and of Gitea's that Offstage calls; what it says of branches and commits is read from refs. */
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
  const answer = await answerOf(state, {
    place: { webUrl: state.url, owner, name },
    isGitea: version === "v1",
    method: request.method ?? "GET",
    path,
    query,
    token: (request.headers.authorization ?? "").replace(/^(?:Bearer|token) /u, ""),
    body: text === "" ? {} : (JSON.parse(text) as Record<string, string>),
  });
  if (answer.status === null) response.destroy();
  else
    response
      .writeHead(answer.status, { "Content-Type": "application/json; charset=utf-8" })
      .end(JSON.stringify(answer.body));
}

async function answerOf(state: ForgeState, request: ApiRequest): Promise<Answer> {
  const { place, path, method, query } = request;
  if (state.failures[0]?.kind === "status") {
    const failure = state.failures.shift();
    return refused(failure?.kind === "status" ? failure.status : 500, "Server Error");
  }
  if (path.endsWith("/access_tokens") || path === "/installation") return answerApp(state, request);
  if (!state.tokens.has(request.token)) return refused(401, "Bad credentials");
  const pulls = state.pulls.get(`${place.owner}/${place.name}`);
  if (pulls === undefined) return refused(404, "Not Found");
  const one = /^\/pulls\/(\d+)$/u.exec(path);
  if (one !== null) {
    const index = pulls.findIndex((candidate) => candidate.number === Number(one[1]));
    const found = pulls[index];
    if (found !== undefined && method === "PATCH") pulls[index] = { ...found, ...bodyIn(request) };
    const pull = pulls[index];
    if (pull === undefined) return refused(404, "Not Found");
    const shown = (await show(state, request, pull)) as object;
    const mergeable = await mergeableOf(state, place, pull, request.isGitea);
    return { status: 200, body: { ...shown, mergeable } };
  }
  if (path !== "/pulls") return refused(404, "Not Found");
  if (method === "GET") {
    const found = pulls.filter((pull) => matches(pull, request)).toReversed();
    const page = Number(query.get("page") ?? 1) === 1 ? found : [];
    return { status: 200, body: await Promise.all(page.map((pull) => show(state, request, pull))) };
  }
  const opened = await open(state, request, pulls);
  if (state.failures[0]?.kind === "loseAnswer") {
    state.failures.shift();
    return { status: null };
  }
  return "status" in opened ? opened : { status: 201, body: await show(state, request, opened.pull) };
}

/** What of a pull request a PATCH changes here. */
function bodyIn({ body: { body } }: ApiRequest): { readonly body?: string } {
  return body === undefined ? {} : { body };
}

/** A GitHub App's two calls, with its own token: which installation is it, and a token of that one. */
function answerApp(state: ForgeState, { place, path, token }: ApiRequest): Answer {
  if (state.app === null || !isAppToken(token, state.app)) return refused(401, "A JSON web token could not be decoded");
  if (path === "/installation") return { status: 200, body: installationShape(place, state.app.id) };
  const given = newInstallationToken();
  state.tokens.add(given.token);
  return { status: 201, body: given };
}

/** Gitea's list has no filter by branch. */
function matches(pull: TestPullRequest, { place, query, isGitea }: ApiRequest): boolean {
  if (isGitea) return true;
  const head = query.get("head");
  const state = query.get("state") ?? "open";
  const isOpen = pull.state === "open" ? "open" : "closed";
  return (
    (head === null || head === `${place.owner}:${pull.head}`) &&
    (query.get("base") ?? pull.base) === pull.base &&
    (state === "all" || state === isOpen)
  );
}

/** Refuses as GitHub does: a branch that is missing, no commits between, one that is open already. */
async function open(
  state: ForgeState,
  request: ApiRequest,
  pulls: TestPullRequest[],
): Promise<{ pull: TestPullRequest } | Answer> {
  const { place, isGitea, body } = request;
  const { head = "", base = "", title = "", body: text = "" } = body;
  const invalid = (error: object, status = 422): Answer => ({
    status,
    body: {
      message: "Validation Failed",
      errors: [{ resource: "PullRequest", ...error }],
      documentation_url: `${documentation}/pulls/pulls#create-a-pull-request`,
    },
  });
  const { headSha, baseSha } = await commitsOf(state, place, { head, base });
  if (headSha === null) return invalid({ field: "head", code: "invalid" });
  if (baseSha === null) return invalid({ field: "base", code: "invalid" });
  if (headSha === baseSha) return invalid({ code: "custom", message: `No commits between ${base} and ${head}` });
  if (pulls.some((pull) => pull.state === "open" && pull.head === head && pull.base === base)) {
    return invalid(
      { code: "custom", message: `A pull request already exists for ${place.owner}:${head}.` },
      isGitea ? 409 : 422,
    );
  }
  const pull: TestPullRequest = { number: pulls.length + 1, title, body: text, head, base, state: "open" };
  pulls.push(pull);
  return { pull };
}

async function show(state: ForgeState, { place, isGitea }: ApiRequest, pull: TestPullRequest): Promise<unknown> {
  const { headSha, baseSha } = await commitsOf(state, place, pull);
  const shape = pullRequestShape(place, pull, { headSha: headSha ?? "", baseSha: baseSha ?? "" });
  if (!isGitea) return shape;
  const { number, html_url, state: shown, merged, title, body, head, base } = shape;
  return {
    number,
    html_url,
    state: shown,
    merged,
    title,
    body,
    head: { ref: head.ref, sha: head.sha },
    base: { ref: base.ref, sha: base.sha },
  };
}

async function commitsOf(state: ForgeState, { owner, name }: Place, { head, base }: { head: string; base: string }) {
  const bare = join(state.root, owner, `${name}.git`);
  const shaOf = async (branch: string): Promise<string | null> => {
    const found = await promisify(execFile)(
      "git",
      ["-C", bare, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`],
      {
        env: gitEnvironment,
      },
    ).catch(() => null);
    return found === null ? null : found.stdout.trim();
  };
  return { headSha: await shaOf(head), baseSha: await shaOf(base) };
}
