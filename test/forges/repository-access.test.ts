import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Forge } from "../../src/forges/forge.ts";
import { gitHubAccess } from "../../src/forges/github/access.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createPlainGit } from "../../src/forges/plain-git.ts";
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

const github = () => createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: server.token });
const gitea = () =>
  createGitea({ kind: "gitea", webUrl: server.url, apiUrl: `${server.url}/api/v1`, token: server.token });

async function read(forge: Forge, facts: RepositoryFacts) {
  const name = `rights-${(count += 1)}`;
  const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
  await server.commit("acme", name, "fix/a", { "b.txt": "b\n" });
  server.describe("acme", name, facts);
  const address = parseRepositoryUrl(url) as RepositoryAddress;
  return forge.readAccess(address, "fix/a", AbortSignal.timeout(hangTimeoutMs));
}

describe.each<[string, () => Forge]>([
  ["GitHub", github],
  ["Gitea", gitea],
])("the rights on a repository of %s", (_, create) => {
  it("are told as the forge tells them", async () => {
    expect(await read(create(), {})).toMatchObject({ readOnly: null, mayPush: true, hasPullRequests: true, rules: [] });
    expect(await read(create(), { archived: true })).toMatchObject({ readOnly: "archived" });
    expect(await read(create(), { push: false })).toMatchObject({ mayPush: false });
    expect(await read(create(), { hasPullRequests: false })).toMatchObject({ hasPullRequests: false });
  });

  it("of a repository that is not there are an error", async () => {
    const address = parseRepositoryUrl(`${server.url}/acme/not-there`) as RepositoryAddress;
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

it("a mirror of another repository on Gitea can't be pushed to", async () => {
  expect(await read(gitea(), { mirror: true })).toMatchObject({ readOnly: "a mirror" });
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
