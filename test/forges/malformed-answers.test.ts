import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { createBitbucketDataCenter } from "../../src/forges/bitbucket-data-center/bitbucket-data-center.ts";
import { createBitbucket } from "../../src/forges/bitbucket/bitbucket.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { createAuthority } from "../../src/gateway/egress/certificates.ts";
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
const react = () => {
  const target = { subject: { kind: "pullRequest", number: 1 }, commentId: null, isOnLines: false } as const;
  return github().feedback?.react(address(), { ...target, reviewId: "9" }, "eyes", signal());
};
const inSeconds = (seconds: number) => String(Math.ceil(Date.now() / 1_000) + seconds);

describe("a rate limit", () => {
  it.each<[string, () => Answer]>([
    [
      "GitHub's usual one",
      () => ({ status: 403, headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": inSeconds(1) } }),
    ],
    [
      "one that only its words show",
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

  it("is waited for by the forge's own clock, though ours is hours off", async () => {
    const theirs = Date.now() + 3 * 3_600_000;
    const reset = String(Math.ceil(theirs / 1_000) + 1);
    const headers = { date: new Date(theirs).toUTCString(), "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset };
    answers = [() => ({ status: 403, headers }), () => ({ status: 200, body: [] })];
    expect(await find()).toBeNull();
  });

  it("of GitHub's GraphQL is waited for: one with 200 that only its words show", async () => {
    const words = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    answers = [
      () => ({ status: 200, headers: { "retry-after": "1" }, body: { data: null, errors: [{ message: words }] } }),
      () => ({ status: 200, body: { data: { repository: null } } }),
    ];
    await expect(react()).rejects.toThrow("has no such review");
    expect(asked).toBe(2);
  });

  it("that lasts for long is reported at once, as passing", async () => {
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

it("what GitHub's GraphQL did not finish, which it tells with 200, passes", async () => {
  const words = "Something went wrong while executing your query. This may be the result of a timeout.";
  answers = [() => ({ status: 200, body: { data: null, errors: [{ message: words }] } })];
  await expect(react()).rejects.toMatchObject({ code: "forge_unavailable", retryable: true });
});

it("a certificate that is not trusted is said, at once, and waits for a person", async () => {
  const served = createTlsServer(
    createAuthority("Ours").serverFor("127.0.0.1"),
    (_, response) => void response.end("[]"),
  );
  await new Promise<void>((resolve) => served.listen(0, "127.0.0.1", resolve));
  try {
    const apiUrl = `https://127.0.0.1:${(served.address() as AddressInfo).port}`;
    const forge = createGitHub({ kind: "github", webUrl: url, apiUrl, token: "x" });
    await expect(forge.findPullRequest(address(), "work", "main", signal())).rejects.toMatchObject({
      failure: { code: "forge_unavailable", retryable: true, passing: false },
      message: expect.stringMatching(/certificate is not trusted \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)/u) as string,
      remedy: expect.stringContaining("OFFSTAGE_CA_FILE") as string,
    });
  } finally {
    served.close();
  }
});

it("a token that may not is no rate limit", async () => {
  answers = [() => ({ status: 403, body: { message: "Resource not accessible by personal access token" } })];
  await expect(find()).rejects.toMatchObject({ code: "repository_access_denied" });
  expect(asked).toBe(1);
});

it("a renamed repository is reported as such", async () => {
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
  ])("is reported with each of its errors: %s", async (_, errors, words) => {
    await expect(refusal(errors)).rejects.toMatchObject({
      code: "pull_request_refused",
      retryable: false,
      message: expect.stringContaining(`refused the pull request: Validation Failed: ${words}`) as string,
    });
  });

  it("without end is reported in part", async () => {
    const errors = Array.from({ length: 5_000 }, () => ({ field: "f".repeat(5_000), code: "invalid" }));
    const { message } = (await refusal(errors).catch((error: unknown) => error)) as Error;
    expect(message.length).toBeLessThan(1_100);
    const few = Array.from({ length: 12 }, (_, index) => `error ${index}`);
    await expect(refusal(few)).rejects.toMatchObject({ message: expect.stringContaining("and 2 more") as string });
  });
});

describe("GitHub's answer 422 to a pull request", () => {
  const opened = {
    number: 7,
    html_url: "https://github.example/acme/shop/pull/7",
    state: "open",
    merged_at: null,
    body: null,
    head: { ref: "work", sha: "a".repeat(40), repo: { id: 1 } },
    base: { ref: "main", repo: { id: 1 } },
  };
  const said = (error: object): Answer => ({
    status: 422,
    body: { message: "Validation Failed", errors: [{ resource: "PullRequest", ...error }] },
  });
  /** @param isPushed whether the branch is known to be pushed a moment ago */
  const open = (isPushed: boolean) => {
    const work = { sessionId: "s", sha: "a".repeat(40), askedMsAgo: null, beforeAsking: () => Promise.resolve() };
    const request = { head: "work", target: "main", title: "Work", body: "Words" };
    return github().openPullRequest(address(), isPushed ? { ...request, work } : request, signal());
  };
  /** The first POST is refused; the list shows a pull request from then on, or the second POST opens it. */
  const answering = (refusal: Answer, then: "listed" | "opened" | "refused") => {
    let posts = 0;
    answers = [
      ({ method }) => {
        if (method === "GET") return { status: 200, body: then === "listed" && posts > 0 ? [opened] : [] };
        posts += 1;
        return posts === 1 || then !== "opened" ? refusal : { status: 201, body: opened };
      },
    ];
    return () => posts;
  };

  it("that there is one already: it is found, and none is opened", async () => {
    const message = "A pull request already exists for acme:work.";
    const posts = answering(said({ code: "custom", message }), "listed");
    expect(await open(true)).toMatchObject({ number: 7, created: false });
    expect(posts()).toBe(1);
  });

  it.each<[string, object]>([
    ["no commits between", { code: "custom", message: "No commits between main and work" }],
    ["a base that it does not know", { field: "base", code: "invalid" }],
    ["a head that it does not know", { field: "head", code: "invalid" }],
  ])("of %s: asked again if the branch was just pushed, else final", async (_, error) => {
    let posts = answering(said(error), "opened");
    expect(await open(true)).toMatchObject({ number: 7, created: true });
    expect(posts()).toBe(2);
    posts = answering(said(error), "refused");
    await expect(open(false)).rejects.toMatchObject({ code: "pull_request_refused", retryable: false });
    expect(posts()).toBe(1);
  });

  it("of anything else: final, in its words, also if the branch was just pushed", async () => {
    const posts = answering(said({ field: "title", code: "too_long" }), "opened");
    await expect(open(true)).rejects.toMatchObject({
      code: "pull_request_refused",
      retryable: false,
      message: expect.stringContaining("title: too_long") as string,
    });
    expect(posts()).toBe(1);
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
  ])("is reported in its words: %s", async (_, status, body, words) => {
    await expect(refusal(status, body)).rejects.toMatchObject({
      code: "pull_request_refused",
      message: expect.stringContaining(`refused the pull request: ${words}`) as string,
    });
  });

  it("of a token without the scope is reported as such", async () => {
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

describe("Bitbucket Cloud", () => {
  const bitbucket = () => createBitbucket({ kind: "bitbucket", webUrl: url, apiUrl: `${url}/2.0`, token: "x" });
  const endpoint = (name: string, commit = "a".repeat(40)) => ({
    branch: { name },
    commit: { hash: commit },
    repository: { full_name: "acme/shop" },
  });
  const pull = (id: number, fields: object = {}) => ({
    id,
    title: "Work",
    description: null,
    state: "OPEN",
    source: endpoint("work"),
    destination: endpoint("main"),
    links: { html: { href: `${url}/acme/shop/pull-requests/${id}` } },
    ...fields,
  });
  const request = { head: "work", target: "main", title: "Work", body: "Words" };

  it("leads the token to no other server by the address of a next page", async () => {
    const paths: string[] = [];
    const page = (values: unknown[], next?: string) => (incoming: IncomingMessage) => {
      paths.push(incoming.url ?? "");
      return { status: 200, body: { values, ...(next !== undefined && { next }) } };
    };
    answers = [
      page([pull(2, { source: endpoint("other") })], "http://elsewhere.invalid/steal?page=2"),
      page([pull(1)]),
    ];
    expect(await bitbucket().findPullRequest(address(), "work", "main", signal())).toMatchObject({ number: 1 });
    expect(paths[1]).toBe("/2.0/repositories/acme/shop/pullrequests?page=2");
  });

  it("answers with an older pull request as if it were new, which is none that was opened", async () => {
    const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
    const answerWith = (created: string) => [
      ({ method }: IncomingMessage) =>
        method === "POST"
          ? { status: 201, body: pull(7, { created_on: created }) }
          : { status: 200, body: asked === 1 ? { values: [] } : pull(7) },
    ];
    answers = answerWith(hourAgo);
    expect(await bitbucket().openPullRequest(address(), request, signal())).toMatchObject({
      number: 7,
      created: false,
    });
    asked = 0;
    answers = answerWith(new Date().toISOString());
    expect(await bitbucket().openPullRequest(address(), request, signal())).toMatchObject({ number: 7, created: true });
  });

  it.each<[string, object, string]>([
    ["a message", { message: "There is no such workspace" }, "There is no such workspace"],
    [
      "a message and the fields that it does not name",
      { message: "Bad request", fields: { title: ["is too long"], source: ["is odd"] } },
      "Bad request: title: is too long; source: is odd",
    ],
    [
      "a message that has the field",
      { message: "title: is too long", fields: { title: ["is too long"] } },
      "title: is too long",
    ],
    ["details", { message: "Bad request", detail: "Not like this." }, "Bad request: Not like this."],
  ])("is reported in its words: %s", async (_, error, words) => {
    answers = [
      ({ method }) =>
        method === "GET" ? { status: 200, body: { values: [] } } : { status: 400, body: { type: "error", error } },
    ];
    await expect(bitbucket().openPullRequest(address(), request, signal())).rejects.toMatchObject({
      code: "pull_request_refused",
      message: `127.0.0.1:${new URL(url).port} refused the pull request: ${words}`,
    });
  });

  it.each([
    ["nothing", {}],
    ["another server", { location: "http://elsewhere.invalid/2.0/repositories/acme/shop/file-conflicts/a..b/../../x" }],
  ])("says nothing of conflicts if it leads to %s", async (_, headers) => {
    answers = [() => ({ status: 200, body: pull(1) }), () => ({ status: 302, headers })];
    expect(await bitbucket().readPullRequest(address(), 1, signal())).toMatchObject({ mergeable: null });
    expect(asked).toBe(2);
  });
});

describe("Bitbucket Data Center", () => {
  const dataCenter = () =>
    createBitbucketDataCenter({
      kind: "bitbucketDataCenter",
      webUrl: url,
      apiUrl: `${url}/rest/api/latest`,
      token: "x",
    });
  const ref = (branch: string) => ({
    id: `refs/heads/${branch}`,
    latestCommit: "a".repeat(40),
    repository: { slug: "SHOP", project: { key: "ACME" } },
  });
  const pull = (id: number, fields: object = {}) => ({
    id,
    version: 1,
    title: "Work",
    description: "Words",
    state: "OPEN",
    fromRef: ref("work"),
    toRef: ref("main"),
    ...fields,
  });
  const request = { head: "work", target: "main", title: "Work", body: "Words" };

  it("gets another request to change a text that was changed meanwhile, with its new version and reviewers", async () => {
    const sent: string[] = [];
    const reviewers = [{ user: { name: "ada", id: 7 }, role: "REVIEWER" }];
    const put = (status: number) => (incoming: IncomingMessage) => {
      incoming.on("data", (chunk: Buffer) => sent.push(chunk.toString()));
      return { status, body: { errors: [{ message: "out-of-date" }] } };
    };
    answers = [
      () => ({ status: 200, body: pull(1) }),
      put(409),
      () => ({ status: 200, body: pull(1, { version: 2, description: "Theirs", reviewers }) }),
      put(200),
    ];
    await dataCenter().editPullRequest(address(), 1, (text) => `${text} and ours`, signal());
    expect(sent.map((each) => JSON.parse(each) as object)).toEqual([
      { version: 1, title: "Work", description: "Words and ours", reviewers: [] },
      { version: 2, title: "Work", description: "Theirs and ours", reviewers: [{ user: { name: "ada" } }] },
    ]);
  });

  it("gives up a text that is changed again and again", async () => {
    answers = [({ method }) => (method === "PUT" ? { status: 409 } : { status: 200, body: pull(1) })];
    await expect(dataCenter().editPullRequest(address(), 1, () => "Ours", signal())).rejects.toMatchObject({
      code: "pull_request_refused",
    });
    expect(asked).toBe(8);
  });

  it("names the pull request that there is already, which is taken", async () => {
    const exceptionName = "com.atlassian.bitbucket.pull.DuplicatePullRequestException";
    const refusal = { errors: [{ message: "Only one", exceptionName, existingPullRequest: pull(12) }] };
    answers = [
      ({ method, url: path = "" }) => {
        if (method === "POST") return { status: 409, body: refusal };
        return { status: 200, body: path.endsWith("/12") ? pull(12) : { values: [], isLastPage: true } };
      },
    ];
    expect(await dataCenter().openPullRequest(address(), request, signal())).toMatchObject({
      number: 12,
      created: false,
    });
  });

  it("is reported in its words, without the names of its classes", async () => {
    const errors = [{ context: "title", message: "Too long", exceptionName: "x.y.Z" }, { message: "And wrong" }];
    answers = [
      ({ method }) =>
        method === "GET" ? { status: 200, body: { values: [], isLastPage: true } } : { status: 400, body: { errors } },
    ];
    await expect(dataCenter().openPullRequest(address(), request, signal())).rejects.toMatchObject({
      message: expect.stringContaining("refused the pull request: Too long; And wrong") as string,
    });
  });

  it("ends a list that does not go on, whatever its page says", async () => {
    answers = [() => ({ status: 200, body: { values: [], isLastPage: false, nextPageStart: 0 } })];
    expect(await dataCenter().findPullRequest(address(), "work", "main", signal())).toBeNull();
    expect(asked).toBe(1);
  });

  it.each([
    [{ conflicted: false, outcome: "CLEAN", canMerge: false }, true],
    [{ conflicted: true, outcome: "CONFLICTED", canMerge: false }, false],
    [{ conflicted: false, outcome: "UNKNOWN" }, null],
    [{ conflicted: true }, false],
    [{}, null],
  ])("says %j of a merge, which Offstage takes for mergeable: %s", async (body, mergeable) => {
    answers = [() => ({ status: 200, body: pull(1) }), () => ({ status: 200, body })];
    expect(await dataCenter().readPullRequest(address(), 1, signal())).toMatchObject({ mergeable });
  });
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
