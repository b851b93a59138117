import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Forge } from "../../src/forges/forge.ts";
import { azureAccess } from "../../src/forges/azure/access.ts";
import { createAzure } from "../../src/forges/azure/azure.ts";
import { gitHubAccess } from "../../src/forges/github/access.ts";
import { createBitbucketDataCenter } from "../../src/forges/bitbucket-data-center/bitbucket-data-center.ts";
import { createBitbucket } from "../../src/forges/bitbucket/bitbucket.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { gitLabAccess } from "../../src/forges/gitlab/access.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { createPlainGit } from "../../src/forges/plain-git.ts";
import { asAzure } from "../forge/azure-url.ts";
import { createTestApp } from "../forge/github-app.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import type { RepositoryFacts } from "../forge/state.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;
let count = 0;
const app = createTestApp(7);

beforeAll(async () => {
  server = await startForge();
  server.registerApp(app);
});

afterAll(() => server?.close());

const azure = () => createAzure({ kind: "azure", webUrl: server.url, apiUrl: server.url, token: server.token });
const github = () => createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: server.token });
const gitlab = () =>
  createGitLab({ kind: "gitlab", webUrl: server.url, apiUrl: `${server.url}/api/v4`, token: server.token });
const gitea = () =>
  createGitea({ kind: "gitea", webUrl: server.url, apiUrl: `${server.url}/api/v1`, token: server.token });

const bitbucket = (username?: string) =>
  createBitbucket({
    kind: "bitbucket",
    webUrl: server.url,
    apiUrl: `${server.url}/2.0`,
    token: server.token,
    username,
  });

const dataCenter = () =>
  createBitbucketDataCenter({
    kind: "bitbucketDataCenter",
    webUrl: server.url,
    apiUrl: `${server.url}/rest/api/latest`,
    token: server.token,
  });

async function read(forge: Forge, facts: RepositoryFacts) {
  const name = `rights-${(count += 1)}`;
  const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
  await server.commit("acme", name, "fix/a", { "b.txt": "b\n" });
  server.describe("acme", name, facts);
  const address = parseRepositoryUrl(forge.kind === "azure" ? asAzure(url) : url) as RepositoryAddress;
  return forge.readAccess(address, "fix/a", AbortSignal.timeout(hangTimeoutMs));
}

describe.each<[string, () => Forge]>([
  ["Azure DevOps", azure],
  ["GitHub", github],
  ["GitLab", gitlab],
  ["Gitea", gitea],
  ["Bitbucket", () => bitbucket("me@acme.example")],
  ["Data Center", dataCenter],
])("the rights on a repository of %s", (kind, create) => {
  it("are as the forge reports them", async () => {
    // Azure DevOps has no switch for pull requests, and its word is another.
    const [hasPullRequests, without, archived] =
      kind === "Azure DevOps" ? [null, null, "disabled"] : [true, false, "archived"];
    expect(await read(create(), {})).toMatchObject({ readOnly: null, mayPush: true, hasPullRequests, rules: [] });
    expect(await read(create(), { push: false })).toMatchObject({ mayPush: false });
    // Bitbucket Cloud archives nothing, and has pull requests everywhere.
    if (kind === "Bitbucket") return;
    expect(await read(create(), { archived: true })).toMatchObject({ readOnly: archived });
    if (kind === "Data Center") return;
    expect(await read(create(), { hasPullRequests: false })).toMatchObject({ hasPullRequests: without });
  });

  it("of a repository that is not there are an error", async () => {
    const url = `${server.url}/acme/not-there`;
    const address = parseRepositoryUrl(kind === "Azure DevOps" ? asAzure(url) : url) as RepositoryAddress;
    await expect(create().readAccess(address, "a", AbortSignal.timeout(hangTimeoutMs))).rejects.toMatchObject({
      code: "repository_not_found",
    });
  });

  it("are not waited for", async () => {
    await server.failNext({ kind: "hang", at: "repository" });
    const began = performance.now();
    await expect(read(create(), {})).rejects.toMatchObject({ code: "forge_unavailable" });
    expect(performance.now() - began).toBeLessThan(15_000);
  });
});

it("of Bitbucket are not shown to an access token, which has no user and no forks", async () => {
  expect(await read(bitbucket(), { push: false })).toMatchObject({ mayPush: null, mayFork: false });
  expect(await read(bitbucket("me@acme.example"), { allowForking: false })).toMatchObject({ mayFork: false });
  expect(await read(bitbucket("me@acme.example"), {})).toMatchObject({ mayFork: null });
});

it("a mirror of another repository on Gitea can't be pushed to", async () => {
  expect(await read(gitea(), { mirror: true })).toMatchObject({ readOnly: "a mirror" });
});

describe("what Azure DevOps says of a token", () => {
  it.each<[string, RepositoryFacts, object]>([
    ["of a project in which it may make no repository", { allowForking: false }, { mayPush: true, mayFork: false }],
    // The branch fix/a, in the digits of its UTF-16.
    [
      "of a branch with permissions of its own",
      { rules: [{ type: "deny", pattern: "/refs/heads/660069007800/6100" }] },
      { mayPush: false },
    ],
    ["of another branch", { rules: [{ type: "deny", pattern: "/refs/heads/6d0061006900" }] }, { mayPush: true }],
  ])("%s", async (_, facts, access) => {
    expect(await read(azure(), facts)).toMatchObject(access);
  });

  it("is not taken for more than it is", () => {
    const repository = { id: "r", name: "shop", project: { id: "p", name: "shop" } };
    const unknown = { readOnly: null, hasPullRequests: null, mayChangeWorkflows: null, rules: [] };
    expect(azureAccess(repository, null, true)).toEqual({ ...unknown, mayPush: null, mayFork: null });
    expect(azureAccess(repository, null, false)).toEqual({ ...unknown, mayPush: false, mayFork: false });
    // It may push to a branch that is there.
    expect(azureAccess(repository, [true, false, false], true)).toMatchObject({ mayPush: null, mayFork: false });
    expect(azureAccess(repository, ["yes", 1], true)).toMatchObject({ mayPush: null, mayFork: null });
  });
});

describe("what GitLab says of a token", () => {
  const rule = (pattern: string, level: number | null, userId?: number) => ({
    type: "protected",
    pattern,
    level,
    ...(userId !== undefined && { userId }),
  });

  it.each<[string, RepositoryFacts, object]>([
    ["of a project whose deletion is planned", { markedForDeletion: true }, { readOnly: "marked for deletion" }],
    ["of one without forks", { allowForking: false }, { mayFork: false }],
    ["of another branch that is protected", { rules: [rule("main", 40)] }, { mayPush: true, rules: [] }],
    [
      "of a pattern of protected branches for a higher role",
      { rules: [rule("*", 40)] },
      { mayPush: false, rules: ["branches protected as *"] },
    ],
    ["of a pattern with slashes on both sides", { rules: [rule("f*/*", 0)] }, { mayPush: false }],
    ["of a pattern that does not fit", { rules: [rule("fix/a*a", 0)] }, { mayPush: true, rules: [] }],
    [
      "of a protected branch for its role",
      { rules: [rule("fix/a", 30)] },
      { mayPush: true, rules: ["a protected branch"] },
    ],
    ["of one for a user, who may be the token's", { rules: [rule("fix/a", 40, 7)] }, { mayPush: true }],
    [
      "of several patterns, the kindest of which counts",
      { rules: [rule("fix/*", 0), rule("*", 30)] },
      { mayPush: true },
    ],
    ["of a member of a group that it was shared with", { silentOnRole: true }, { mayPush: null }],
    [
      "of more rules than are on a page, of which a later one may be kinder",
      { rules: [rule("fix/*", 0), ...Array.from({ length: 99 }, () => rule("main", 40)), rule("fix/*", 30)] },
      { mayPush: true, rules: [] },
    ],
    ["of such a member, if no role may push", { silentOnRole: true, rules: [rule("fix/*", 0)] }, { mayPush: false }],
    ["of such a member, if a role may push", { silentOnRole: true, rules: [rule("fix/*", 40)] }, { mayPush: null }],
  ])("%s", async (_, facts, access) => {
    expect(await read(gitlab(), facts)).toMatchObject(access);
  });

  it("without a token is that it may not push, nor fork", () => {
    const project = { id: 1, path_with_namespace: "a/b", merge_requests_access_level: "private" } as const;
    expect(gitLabAccess(project, null, { branch: "a", hasToken: false })).toEqual({
      readOnly: null,
      mayPush: false,
      hasPullRequests: null,
      mayChangeWorkflows: null,
      mayFork: false,
      rules: [],
    });
  });
});

it("a GitHub App may open pull requests if it was granted that", () => {
  const of = (pullRequests: string | undefined) =>
    gitHubAccess(
      { body: {}, headers: new Headers() },
      { status: 404, body: null },
      { granted: { contents: "write", pull_requests: pullRequests }, token: null },
    );
  expect(of("write")).toMatchObject({ mayPush: true, mayOpenPullRequests: true });
  expect(of("read")).toMatchObject({ mayPush: true, mayOpenPullRequests: false });
  expect(of(undefined)).toMatchObject({ mayOpenPullRequests: false });
});

it("a GitHub App's rights are those of its token, not those that the repository shows", async () => {
  const forge = createGitHub({
    kind: "github",
    webUrl: server.url,
    apiUrl: server.apiUrl,
    app: { id: "7", privateKey: app.privateKey },
  });
  expect(await read(forge, { push: false })).toMatchObject({
    mayPush: true,
    mayChangeWorkflows: false,
    mayFork: false,
  });
});

describe("what GitHub says of a token", () => {
  const access = (body: unknown, scopes: string | null, token = "ghp_x") =>
    gitHubAccess(
      { body, headers: new Headers(scopes === null ? {} : { "x-oauth-scopes": scopes }) },
      { status: 404, body: { message: "Not Found" } },
      { granted: null, token },
    );
  const permissions = { admin: false, push: true, pull: true };

  it("of a classic one depends on its scopes too", () => {
    expect(access({ permissions, private: true }, "repo, workflow")).toMatchObject({
      mayPush: true,
      mayChangeWorkflows: true,
    });
    expect(access({ permissions, private: true }, "public_repo")).toMatchObject({
      mayPush: false,
      mayChangeWorkflows: false,
    });
    expect(access({ permissions, private: false }, "public_repo")).toMatchObject({ mayPush: true });
  });

  it("of others is not more than it says", () => {
    const unknown = {
      readOnly: null,
      mayPush: null,
      hasPullRequests: null,
      mayChangeWorkflows: null,
      mayFork: null,
      rules: [],
    };
    expect(access({}, null)).toEqual(unknown);
    expect(access(null, "")).toEqual(unknown);
    // Of an Action's own token GitHub says that it may nothing.
    expect(access({ permissions: { ...permissions, push: false } }, null, "ghs_x")).toEqual(unknown);
    expect(access({ permissions: { ...permissions, push: false } }, null)).toMatchObject({ mayPush: false });
  });
});

it("plain git says nothing", async () => {
  const address = parseRepositoryUrl("https://git.example/a/b") as RepositoryAddress;
  expect(await createPlainGit(null).readAccess(address, "a", AbortSignal.timeout(hangTimeoutMs))).toBeNull();
});
