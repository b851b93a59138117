import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Forge } from "../../src/forges/forge.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { createPlainGit } from "../../src/forges/plain-git.ts";
import { createTestApp } from "../forge/github-app.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;
/** All of it below a path of its host. */
let below: TestForge;
const app = createTestApp(7);

beforeAll(async () => {
  server = await startForge();
  server.registerApp(app);
  below = await startForge({ below: "/forge" });
});

afterAll(async () => {
  await server?.close();
  await below?.close();
});

const gitlab = ({ url, token }: TestForge): Forge =>
  createGitLab({ kind: "gitlab", webUrl: url, apiUrl: `${url}/api/v4`, token });
const gitea = ({ url, token }: TestForge): Forge =>
  createGitea({ kind: "gitea", webUrl: url, apiUrl: `${url}/api/v1`, token });

/** Each with its words for branches without a difference, the owner of its repositories and where it is. */
const adapters: readonly [string, () => Forge, string, string?, (() => TestForge)?][] = [
  [
    "GitHub by token",
    () => createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: server.token }),
    "No commits between",
  ],
  [
    "GitHub as an App",
    () =>
      createGitHub({
        kind: "github",
        webUrl: server.url,
        apiUrl: server.apiUrl,
        app: { id: "7", privateKey: app.privateKey },
      }),
    "No commits between",
  ],
  ["GitLab", () => gitlab(server), "same project/branch"],
  ["GitLab in groups of groups", () => gitlab(server), "same project/branch", "acme/platform/tools"],
  ["GitLab below a path", () => gitlab(below), "same project/branch", "acme/platform", () => below],
  ["Gitea", () => gitea(server), "There are no changes between"],
  ["Gitea below a path", () => gitea(below), "There are no changes between", "acme", () => below],
];
let count = 0;

describe.each(adapters)("%s", (_, create, noDifference, owner = "acme", forgeOf = () => server) => {
  const request = { head: "work", target: "main", title: "Work", body: "Words" };

  /** A repository of its own, with a branch to open a pull request for. */
  async function setting() {
    const name = `shop-${(count += 1)}`;
    const { url } = await forgeOf().createRepository(owner, name, { "a.txt": "a\n" });
    await forgeOf().commit(owner, name, "work", { "b.txt": "b\n" });
    return {
      name,
      forge: create(),
      address: parseRepositoryUrl(url) as RepositoryAddress,
      signal: AbortSignal.timeout(hangTimeoutMs),
    };
  }

  it("opens a pull request, finds it by its branches and reads it by its number", async () => {
    const { name, forge, address, signal } = await setting();
    expect(await forge.findPullRequest(address, "work", "main", signal)).toBeNull();
    const opened = await forge.openPullRequest(address, request, signal);
    expect(opened).toMatchObject({ number: 1, state: "open", head: "work", target: "main", created: true });
    expect(await forge.findPullRequest(address, "work", "main", signal)).toMatchObject({ number: 1 });
    expect(await forge.findPullRequest(address, "work", "release", signal)).toBeNull();
    expect(await forge.readPullRequest(address, 1, signal)).toMatchObject({ url: opened.url });
    expect(await forgeOf().pullRequests(owner, name)).toMatchObject([{ title: "Work", body: "Words" }]);
  });

  it("finds the one that is open instead of opening a second", async () => {
    const { name, forge, address, signal } = await setting();
    await forge.openPullRequest(address, request, signal);
    expect(await forge.openPullRequest(address, request, signal)).toMatchObject({ number: 1, created: false });
    expect(await forgeOf().pullRequests(owner, name)).toHaveLength(1);
  });

  it("opens one and no more where the answer was lost", async () => {
    const { name, forge, address, signal } = await setting();
    await forgeOf().failNext({ kind: "loseAnswer" });
    expect(await forge.openPullRequest(address, request, signal)).toMatchObject({ number: 1, state: "open" });
    expect(await forgeOf().pullRequests(owner, name)).toHaveLength(1);
  });

  it("opens one and no more where twenty ask at once, and tells each its number", async () => {
    const { name, forge, address, signal } = await setting();
    const opened = await Promise.all(Array.from({ length: 20 }, () => forge.openPullRequest(address, request, signal)));
    expect(new Set(opened.map(({ number }) => number))).toEqual(new Set([1]));
    expect(opened.filter(({ created }) => created)).toHaveLength(1);
    expect(await forgeOf().pullRequests(owner, name)).toHaveLength(1);
  });

  it("tells one that is merged or closed from one that is open", async () => {
    const { name, forge, address, signal } = await setting();
    await forge.openPullRequest(address, request, signal);
    forgeOf().endPullRequest(owner, name, 1, "merged");
    expect(await forge.findPullRequest(address, "work", "main", signal)).toMatchObject({ number: 1, state: "merged" });
    expect(await forge.openPullRequest(address, request, signal)).toMatchObject({ number: 2, created: true });
    forgeOf().endPullRequest(owner, name, 2, "closed");
    expect(await forge.readPullRequest(address, 2, signal)).toMatchObject({ state: "closed" });
  });

  it("tries again what passes by itself", async () => {
    const { forge, address, signal } = await setting();
    await forge.credentials(address, signal);
    await forgeOf().failNext({ kind: "status", status: 502 });
    await forgeOf().failNext({ kind: "status", status: 503 });
    expect(await forge.openPullRequest(address, request, signal)).toMatchObject({ number: 1, created: true });
  });

  it("says in the forge's words why a pull request is refused", async () => {
    const { name, forge, address, signal } = await setting();
    const missing = forge.openPullRequest(address, { ...request, head: "nowhere" }, signal);
    await expect(missing).rejects.toMatchObject({ code: "pull_request_refused" });
    await forgeOf().commit(owner, name, "main", { "c.txt": "c\n" });
    const empty = forge.openPullRequest(address, { ...request, head: "main", target: "work" }, signal);
    await expect(empty).resolves.toMatchObject({ created: true });
    const same = forge.openPullRequest(address, { ...request, head: "main", target: "main" }, signal);
    await expect(same).rejects.toMatchObject({
      code: "pull_request_refused",
      message: expect.stringContaining(noDifference) as string,
    });
  });

  it("says that a repository is not there", async () => {
    const { forge, signal } = await setting();
    const address = parseRepositoryUrl(`${forgeOf().url}/${owner}/not-there`) as RepositoryAddress;
    await expect(forge.openPullRequest(address, request, signal)).rejects.toMatchObject({
      code: "repository_not_found",
    });
  });

  it("gives git credentials that the forge takes", async () => {
    const { forge, address, signal } = await setting();
    const { username, password } = (await forge.credentials(address, signal)) ?? { username: "", password: "" };
    const answer = await fetch(`${address.cloneUrl}/info/refs?service=git-upload-pack`, {
      headers: { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` },
    });
    expect(answer.status).toBe(200);
  });

  it("stops when the session is cancelled", async () => {
    const { forge, address } = await setting();
    const cancelled = new Error("cancelled");
    await expect(forge.openPullRequest(address, request, AbortSignal.abort(cancelled))).rejects.toBe(cancelled);
  });
});

describe("a forge that does not let us in", () => {
  const address = () => parseRepositoryUrl(`${server.url}/acme/shop-1`) as RepositoryAddress;
  const signal = () => AbortSignal.timeout(hangTimeoutMs);

  it.each([
    ["GitHub", () => createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: "wrong" })],
    ["GitLab", () => gitlab({ ...server, token: "wrong" })],
    ["Gitea", () => gitea({ ...server, token: "wrong" })],
  ])("is told as refused access: %s", async (_, create) => {
    await expect(create().findPullRequest(address(), "work", "main", signal())).rejects.toMatchObject({
      code: "repository_access_denied",
      remedy: expect.stringContaining("token") as string,
    });
  });

  it("names the App's key file where it can't sign", async () => {
    const github = createGitHub({
      kind: "github",
      webUrl: server.url,
      apiUrl: server.apiUrl,
      app: { id: "7", privateKey: "nonsense" },
    });
    await expect(github.credentials(address(), signal())).rejects.toMatchObject({
      remedy: expect.stringContaining("OFFSTAGE_GITHUB_APP_PRIVATE_KEY_FILE") as string,
    });
  });

  it("refuses an App's token that another key signed", async () => {
    const { privateKey } = createTestApp(7);
    const github = createGitHub({
      kind: "github",
      webUrl: server.url,
      apiUrl: server.apiUrl,
      app: { id: "7", privateKey },
    });
    await expect(github.credentials(address(), signal())).rejects.toMatchObject({ code: "repository_access_denied" });
  });
});

describe("a forge that is down", () => {
  it("is told as unavailable after a few tries, and that a retry can help", async () => {
    const gone = await startForge();
    await gone.close();
    const github = createGitHub({ kind: "github", webUrl: gone.url, apiUrl: gone.apiUrl, token: "x" });
    const address = parseRepositoryUrl(`${gone.url}/acme/shop`) as RepositoryAddress;
    await expect(
      github.findPullRequest(address, "work", "main", AbortSignal.timeout(hangTimeoutMs)),
    ).rejects.toMatchObject({
      code: "forge_unavailable",
      retryable: true,
    });
  });
});

describe("plain git", () => {
  it("opens no pull requests, and gives the configured credentials to its own host alone", async () => {
    const forge = createPlainGit({
      kind: "git",
      webUrl: "https://git.example.com",
      username: "robot",
      token: "secret",
    });
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const own = parseRepositoryUrl("https://git.example.com/team/shop") as RepositoryAddress;
    const other = parseRepositoryUrl("https://git.example.com.evil.example/team/shop") as RepositoryAddress;
    expect(forge.opensPullRequests).toBe(false);
    expect([forge.serves(own), forge.serves(other)]).toEqual([true, false]);
    expect(await forge.credentials(own, signal)).toEqual({ username: "robot", password: "secret" });
  });
});

describe("a forge's token", () => {
  const forges = createForges([
    { kind: "github", webUrl: "https://github.com", apiUrl: "https://api.github.com", token: "secret" },
  ]);
  const credentialsOf = (url: string) => {
    const address = parseRepositoryUrl(url) as RepositoryAddress;
    return forges.forgeOf(address).credentials(address, AbortSignal.timeout(hangTimeoutMs));
  };

  it("is for git over https", async () => {
    expect(await credentialsOf("https://github.com/acme/shop")).toMatchObject({ password: "secret" });
  });

  it.each(["git@github.com:acme/shop.git", "ssh://git@github.com/acme/shop"])("is not for ssh: %s", async (url) => {
    expect(await credentialsOf(url)).toBeNull();
  });

  it("is not sent unencrypted", async () => {
    await expect(credentialsOf("http://github.com/acme/shop")).rejects.toMatchObject({
      code: "repository_access_denied",
      remedy: expect.stringContaining("https://") as string,
    });
  });
});
