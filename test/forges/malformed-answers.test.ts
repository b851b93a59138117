import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { createTestApp } from "../forge/github-app.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** What a forge says when it does not say what one asked for. */
let server: Server;
let url: string;
/** In turn; the last again and again. */
let answers: ((request: IncomingMessage) => Answer)[] = [];
let asked = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume();
    asked += 1;
    const [answer] = answers.length > 1 ? answers.splice(0, 1) : answers;
    const { status, headers = {}, body = {} } = answer?.(request) ?? { status: 500 };
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  asked = 0;
});

afterAll(() => {
  server?.closeAllConnections();
  server?.close();
});

const signal = () => AbortSignal.timeout(hangTimeoutMs);
const address = () => parseRepositoryUrl(`${url}/acme/shop`) as RepositoryAddress;
const github = () => createGitHub({ kind: "github", webUrl: url, apiUrl: url, token: "x" });
const gitea = () => createGitea({ kind: "gitea", webUrl: url, apiUrl: url, token: "x" });
const gitlab = () => createGitLab({ kind: "gitlab", webUrl: url, apiUrl: url, token: "x" });
const find = () => github().findPullRequest(address(), "work", "main", signal());
const inSeconds = (seconds: number) => String(Math.ceil(Date.now() / 1_000) + seconds);

describe("a rate limit", () => {
  it.each<[string, () => Answer]>([
    [
      "GitHub's usual one",
      () => ({ status: 403, headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": inSeconds(1) } }),
    ],
    [
      "one told by words alone",
      () => ({ status: 403, body: { message: "You have exceeded a secondary rate limit." } }),
    ],
    [
      "one with a date",
      () => ({ status: 429, headers: { "retry-after": new Date(Date.now() + 1_000).toUTCString() } }),
    ],
    [
      "GitLab's, without JSON",
      () => ({
        status: 429,
        headers: { "ratelimit-remaining": "0", "ratelimit-reset": inSeconds(1), "retry-after": "1" },
        body: "Retry later\n",
      }),
    ],
    [
      "GitLab's, from a proxy that drops Retry-After",
      () => ({ status: 429, headers: { "ratelimit-remaining": "0", "ratelimit-reset": inSeconds(1) } }),
    ],
  ])("is waited for: %s", async (_, limited) => {
    answers = [limited, () => ({ status: 200, body: [] })];
    expect(await find()).toBeNull();
    expect(asked).toBe(2);
  });

  it("that lasts for long is told at once, as what passes", async () => {
    answers = [
      () => ({
        status: 403,
        headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": inSeconds(3_000) },
        body: { message: "API rate limit exceeded for user ID 1." },
      }),
    ];
    await expect(find()).rejects.toMatchObject({
      code: "forge_unavailable",
      retryable: true,
      message: expect.stringContaining("API rate limit exceeded") as string,
    });
    expect(asked).toBe(1);
  });
});

it("a token that may not is no rate limit", async () => {
  answers = [() => ({ status: 403, body: { message: "Resource not accessible by personal access token" } })];
  await expect(find()).rejects.toMatchObject({ code: "repository_access_denied" });
  expect(asked).toBe(1);
});

it("a renamed repository is told as such", async () => {
  answers = [() => ({ status: 301, headers: { location: `${url}/repositories/1` }, body: { message: "Moved" } })];
  await expect(find()).rejects.toMatchObject({
    code: "repository_not_found",
    remedy: expect.stringContaining("new address") as string,
  });
});

it("a page where JSON was asked for is a refusal without a reason", async () => {
  answers = [() => ({ status: 422, body: "<html>" })];
  await expect(find()).rejects.toMatchObject({ code: "pull_request_refused" });
});

describe("a refusal", () => {
  const refusal = (errors: unknown) => {
    answers = [
      ({ method }) =>
        method === "GET"
          ? { status: 200, body: [] }
          : { status: 422, body: { message: "Validation Failed", errors, documentation_url: "https://docs.example" } },
    ];
    const request = { head: "work", target: "main", title: "Work", body: "Words" };
    return github().openPullRequest(address(), request, signal());
  };

  it.each<[string, unknown, string]>([
    ["fields alone", [{ resource: "PullRequest", field: "title", code: "missing_field" }], "title: missing_field"],
    [
      "several",
      [
        { field: "head", code: "invalid" },
        { field: "title", code: "custom", message: "is too long" },
      ],
      "head: invalid; title: is too long",
    ],
    ["texts", ["the first", "the second"], "the first; the second"],
    ["one text", "the only one", "the only one"],
  ])("is told with each of its errors: %s", async (_, errors, words) => {
    await expect(refusal(errors)).rejects.toMatchObject({
      code: "pull_request_refused",
      retryable: false,
      message: expect.stringContaining(`refused the pull request: Validation Failed: ${words}`) as string,
    });
  });

  it("without end is told in part", async () => {
    const errors = Array.from({ length: 5_000 }, () => ({ field: "f".repeat(5_000), code: "invalid" }));
    const { message } = (await refusal(errors).catch((error: unknown) => error)) as Error;
    expect(message.length).toBeLessThan(1_100);
    const few = Array.from({ length: 12 }, (_, index) => `error ${index}`);
    await expect(refusal(few)).rejects.toMatchObject({ message: expect.stringContaining("and 2 more") as string });
  });
});

describe("a refusal of GitLab", () => {
  const request = { head: "work", target: "main", title: "Work", body: "Words" };
  const refusal = (status: number, body: unknown) => {
    answers = [
      ({ method, url: path = "" }) => {
        if (method === "POST") return { status, body };
        return { status: 200, body: path.includes("/branches/") ? { name: "work" } : [] };
      },
    ];
    return gitlab().openPullRequest(address(), request, signal());
  };

  it.each<[string, number, unknown, string]>([
    ["one text", 422, { message: "Title is blocked" }, "Title is blocked"],
    ["a list of texts", 422, { message: ["The first", "The second"] }, "The first; The second"],
    [
      "texts by field",
      400,
      { message: { title: ["can't be blank", "is too short"], base: ["Not like this"] } },
      "title: can't be blank, is too short; Not like this",
    ],
    ["the check of its parameters", 400, { error: "target_branch is missing" }, "target_branch is missing"],
    ["nothing that can be read", 400, { message: [1, null, {}] }, "it gave no reason"],
  ])("is told in its words: %s", async (_, status, body, words) => {
    await expect(refusal(status, body)).rejects.toMatchObject({
      code: "pull_request_refused",
      message: expect.stringContaining(`refused the pull request: ${words}`) as string,
    });
  });

  it("of a token without the scope is told as such", async () => {
    const body = {
      error: "insufficient_scope",
      error_description: "The request requires higher privileges.",
      scope: "api",
    };
    await expect(refusal(403, body)).rejects.toMatchObject({
      code: "repository_access_denied",
      message: expect.stringContaining("requires higher privileges") as string,
    });
  });

  it("of a merge request that there is already names it, and it is taken", async () => {
    const found = {
      iid: 12,
      web_url: `${url}/acme/shop/-/merge_requests/12`,
      state: "opened",
      source_branch: "work",
      target_branch: "main",
      source_project_id: 1,
      target_project_id: 1,
      sha: null,
      description: null,
    };
    answers = [
      ({ method, url: path = "" }) => {
        const words = ["Another open merge request already exists for this source branch: !12"];
        if (method === "POST") return { status: 409, body: { message: words } };
        if (path.endsWith("/merge_requests/12")) return { status: 200, body: found };
        return { status: 200, body: path.includes("/branches/") ? { name: "work" } : [] };
      },
    ];
    const opened = await gitlab().openPullRequest(address(), request, signal());
    expect(opened).toMatchObject({ number: 12, created: false, headSha: "", mark: null });
  });
});

it.each<[object, boolean | null]>([
  [{ merge_status: "can_be_merged", detailed_merge_status: "not_approved", has_conflicts: false }, true],
  [{ merge_status: "can_be_merged", detailed_merge_status: "draft_status", draft: true }, true],
  [{ merge_status: "cannot_be_merged", detailed_merge_status: "draft_status", has_conflicts: true }, false],
  [{ merge_status: "cannot_be_merged", detailed_merge_status: "broken_status", has_conflicts: false }, null],
  [{ merge_status: "cannot_be_merged_recheck", detailed_merge_status: "checking", has_conflicts: false }, null],
  [{ merge_status: "unchecked", detailed_merge_status: "ci_must_pass", has_conflicts: false }, null],
  [{ detailed_merge_status: "conflict" }, false],
  [{ detailed_merge_status: "mergeable" }, true],
  [{ merge_status: "can_be_merged", state: "merged" }, null],
])("of a merge request with %j Offstage takes mergeable for %s", async (fields, mergeable) => {
  answers = [() => ({ status: 200, body: { iid: 1, state: "opened", description: "", ...fields } })];
  expect(await gitlab().readPullRequest(address(), 1, signal())).toMatchObject({ mergeable });
});

it("GitLab's merge requests are read to the last page, with or without its Link header", async () => {
  const page = (iid: number) => ({
    iid,
    web_url: "",
    state: "closed",
    source_branch: "work",
    target_branch: "main",
    source_project_id: iid === 1 ? 1 : 9,
    target_project_id: 1,
    sha: null,
    description: null,
  });
  const next = { link: `<${url}/x?page=2>; rel="next", <${url}/x?page=1>; rel="first"` };
  for (const headers of [next, { "x-next-page": "2" }]) {
    answers = [
      () => ({ status: 200, headers, body: [page(2)] }),
      () => ({ status: 200, headers: { "x-next-page": "" }, body: [page(1)] }),
    ];
    // The newer one is a fork's.
    expect(await gitlab().findPullRequest(address(), "work", "main", signal())).toMatchObject({ number: 1 });
  }
});

it("a fork's pull request of a branch with the same name is not taken for ours", async () => {
  const pull = (number: number, from: number) => ({
    number,
    html_url: `${url}/acme/shop/pulls/${number}`,
    state: "open",
    merged: false,
    head: { ref: "work", repo_id: from },
    base: { ref: "main", repo_id: 1 },
  });
  answers = [() => ({ status: 200, body: [pull(2, 9)] })];
  expect(await gitea().findPullRequest(address(), "work", "main", signal())).toBeNull();
  answers = [() => ({ status: 200, body: [pull(3, 9), pull(2, 1)] })];
  expect(await gitea().findPullRequest(address(), "work", "main", signal())).toMatchObject({ number: 2 });
});

it("what an App was granted meanwhile holds from the next try", async () => {
  const app = createTestApp(7);
  let granted = false;
  let made = 0;
  answers = [
    ({ url: path = "", headers }) => {
      if (path.endsWith("/installation")) return { status: 200, body: { id: 1 } };
      if (path.endsWith("/access_tokens")) {
        made += 1;
        const token = `${granted ? "able" : "unable"}-${made}`;
        return { status: 201, body: { token, expires_at: new Date(Date.now() + 3_600_000).toISOString() } };
      }
      const may = headers.authorization?.startsWith("Bearer able") === true;
      return may
        ? { status: 200, body: [] }
        : { status: 403, body: { message: "Resource not accessible by integration" } };
    },
  ];
  const forge = createGitHub({
    kind: "github",
    webUrl: url,
    apiUrl: url,
    app: { id: "7", privateKey: app.privateKey },
  });
  const look = () => forge.findPullRequest(address(), "work", "main", signal());
  await expect(look()).rejects.toMatchObject({ code: "repository_access_denied" });
  granted = true;
  expect(await look()).toBeNull();
  expect(await look()).toBeNull();
  expect(made).toBe(2);
});
