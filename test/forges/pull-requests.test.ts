import { execFileSync } from "node:child_process";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import Markdown from "react-markdown";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { SessionError } from "../../src/domain/errors/errors.ts";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Forge } from "../../src/forges/forge.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createAzure } from "../../src/forges/azure/azure.ts";
import { createBitbucketDataCenter } from "../../src/forges/bitbucket-data-center/bitbucket-data-center.ts";
import { createBitbucket } from "../../src/forges/bitbucket/bitbucket.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { createPlainGit } from "../../src/forges/plain-git.ts";
import { asAzure } from "../forge/azure-url.ts";
import { bitbucketAccountShape } from "../forge/bitbucket-shapes.ts";
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

const azure = ({ url, token }: TestForge): Forge => createAzure({ kind: "azure", webUrl: url, apiUrl: url, token });
const gitlab = ({ url, token }: TestForge): Forge =>
  createGitLab({ kind: "gitlab", webUrl: url, apiUrl: `${url}/api/v4`, token });
const gitea = ({ url, token }: TestForge): Forge =>
  createGitea({ kind: "gitea", webUrl: url, apiUrl: `${url}/api/v1`, token });

const bitbucket = ({ url, token }: TestForge, username?: string): Forge =>
  createBitbucket({ kind: "bitbucket", webUrl: url, apiUrl: `${url}/2.0`, token, username });

const dataCenter = ({ url, token }: TestForge): Forge =>
  createBitbucketDataCenter({ kind: "bitbucketDataCenter", webUrl: url, apiUrl: `${url}/rest/api/latest`, token });

/** Each with its words for branches without a difference, the owner of its repositories and where it is. */
const adapters: readonly [string, () => Forge, string, string?, (() => TestForge)?][] = [
  ["Azure DevOps", () => azure(server), "target branch are the same"],
  ["Azure DevOps in a project", () => azure(server), "target branch are the same", "acme/My Project"],
  [
    "Azure DevOps below a path",
    () => azure(below),
    "target branch are the same",
    "DefaultCollection/platform",
    () => below,
  ],
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
  ["Bitbucket by access token", () => bitbucket(server), "There are no changes to be pulled"],
  ["Bitbucket Data Center", () => dataCenter(server), "is already up-to-date with"],
  ["Bitbucket Data Center below a path", () => dataCenter(below), "is already up-to-date with", "acme", () => below],
  ["Bitbucket by API token", () => bitbucket(server, "me@acme.example"), "There are no changes to be pulled"],
];
let count = 0;

describe.each(adapters)("%s", (kind, create, noDifference, owner = "acme", forgeOf = () => server) => {
  const inKind = (url: string): string => (kind.startsWith("Azure") ? asAzure(url) : url);
  const request = { head: "work", target: "main", title: "Work", body: "Words" };

  /** A repository of its own, with a branch to open a pull request for. */
  async function setting() {
    const name = `shop-${(count += 1)}`;
    const { url } = await forgeOf().createRepository(owner, name, { "a.txt": "a\n" });
    await forgeOf().commit(owner, name, "work", { "b.txt": "b\n" });
    return {
      name,
      forge: create(),
      address: parseRepositoryUrl(inKind(url)) as RepositoryAddress,
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

  it("reads one whose target was changed, and of which the branches say nothing, by its number", async () => {
    const { name, forge, address, signal } = await setting();
    await forgeOf().commit(owner, name, "release", { "c.txt": "c\n" });
    await forge.openPullRequest(address, request, signal);
    forgeOf().retarget(owner, name, 1, "release");
    expect(await forge.findPullRequest(address, "work", "main", signal)).toBeNull();
    expect(await forge.readPullRequest(address, 1, signal)).toMatchObject({
      state: "open",
      head: "work",
      target: "release",
    });
    await forgeOf().renameBranch(owner, name, "release", "stable");
    expect(await forge.readPullRequest(address, 1, signal)).toMatchObject({ state: "open", target: "stable" });
  });

  it("gets the error that a target does not exist", async () => {
    const { name, forge, address, signal } = await setting();
    const answer = await forge.openPullRequest(address, { ...request, target: "gone" }, signal).then(
      () => "opened",
      (error: SessionError) => error.code,
    );
    // GitLab opens it all the same, as it shows one whose target was removed later: who opens it has to look.
    expect(answer).toMatch(
      kind.startsWith("GitLab") ? /^opened$/u : /^(?:pull_request_refused|repository_not_found)$/u,
    );
    expect(await forgeOf().pullRequests(owner, name)).toHaveLength(answer === "opened" ? 1 : 0);
  });

  it("opens one and no more where the answer was lost", async () => {
    const { name, forge, address, signal } = await setting();
    await forgeOf().failNext({ kind: "loseAnswer" });
    expect(await forge.openPullRequest(address, request, signal)).toMatchObject({ number: 1, state: "open" });
    expect(await forgeOf().pullRequests(owner, name)).toHaveLength(1);
  });

  it("takes another's page, and nothing at all, for no answer", async () => {
    const { name, forge, address, signal } = await setting();
    await forgeOf().failNext({ kind: "loseAnswer", as: "<html>The site is being updated.</html>" });
    expect(await forge.openPullRequest(address, request, signal)).toMatchObject({ number: 1, state: "open" });
    expect(await forgeOf().pullRequests(owner, name)).toHaveLength(1);
    for (const text of ["", "<html>The site is being updated.</html>"]) {
      await forgeOf().failNext({ kind: "page", text });
      expect(await forge.readPullRequest(address, 1, signal)).toMatchObject({ number: 1 });
    }
    expect(forgeOf().pendingFailures()).toBe(0);
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
    const address = parseRepositoryUrl(inKind(`${forgeOf().url}/${owner}/not-there`)) as RepositoryAddress;
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

describe("a pull request of Bitbucket Cloud", () => {
  const api = (path: string, method = "GET", body?: unknown) =>
    fetch(`${server.url}/2.0/repositories/acme/${path}`, {
      method,
      headers: { Authorization: `Bearer ${server.token}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const signal = () => AbortSignal.timeout(hangTimeoutMs);
  const marks = "\n<!-- offstage 0123456789abcdef --><!-- /offstage -->\n\n---\nMade by a session.";
  const work = { sessionId: "0198c1f0-0000-7000-8000-000000000001", sha: "a".repeat(40), askedMsAgo: null };

  async function setting() {
    const name = `cloud-${(count += 1)}`;
    const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
    await server.commit("acme", name, "work", { "b.txt": "b\n" });
    return { name, forge: bitbucket(server), address: parseRepositoryUrl(url) as RepositoryAddress };
  }
  const request = { head: "work", target: "main", title: "Work", body: `Words${marks}` };
  const asked = { ...work, beforeAsking: () => Promise.resolve() };

  it("has marks that Bitbucket does not show, and the rest of Offstage sees them as on other forges", async () => {
    const { name, forge, address } = await setting();
    const { number } = await forge.openPullRequest(address, { ...request, work: asked }, signal());
    const [{ body } = { body: "" }] = await server.pullRequests("acme", name);
    expect(body).not.toContain("<!--");
    expect(renderToStaticMarkup(createElement(Markdown, null, body))).toBe(
      "<p>Words</p>\n<hr/>\n<p>Made by a session.</p>",
    );
    expect(await forge.readPullRequest(address, number, signal())).toMatchObject({
      mark: { sessionId: work.sessionId, sha: work.sha },
    });
    let seen = "";
    const look = (text: string): null => {
      seen = text;
      return null;
    };
    await forge.editPullRequest(address, number, look, signal());
    expect(seen.startsWith(request.body)).toBe(true);
    await forge.editPullRequest(address, number, (text) => `More. ${text}`, signal());
    expect((await server.pullRequests("acme", name))[0]?.body).toBe(`More. ${body}`);
  });

  it("has no mark that an agent wrote in Bitbucket's form", async () => {
    const { forge, address } = await setting();
    const forged = `[//]: # (offstage session=${work.sessionId} commit=${work.sha})`;
    const opened = await forge.openPullRequest(address, { ...request, body: `Words\n\n${forged}\n` }, signal());
    expect(opened.mark).toBeNull();
  });

  it("keeps its title and its reviewers when its text is changed, whom Bitbucket would drop", async () => {
    const { name, forge, address } = await setting();
    const { number } = await forge.openPullRequest(address, request, signal());
    const path = `${name}/pullrequests/${number}`;
    const { uuid } = bitbucketAccountShape("ada");
    await api(path, "PUT", { title: "Renamed", description: "Words", reviewers: [{ uuid }] });
    await forge.editPullRequest(address, number, () => "Other words", signal());
    expect(await (await api(path)).json()).toMatchObject({
      title: "Renamed",
      description: "Other words",
      reviewers: [{ uuid }],
    });
    await api(path, "PUT", { title: "Renamed" });
    expect(await (await api(path)).json()).toMatchObject({ reviewers: [] });
  });

  it("has the whole hash of its head, which Bitbucket shortens", async () => {
    const { name, forge, address } = await setting();
    const sha = execFileSync("git", ["-C", server.pathOf("acme", name), "rev-parse", "work"], { encoding: "utf8" });
    const { number } = await forge.openPullRequest(address, request, signal());
    const [one] = [await forge.readPullRequest(address, number, signal())];
    expect([one.headSha, one.mergeable]).toEqual([sha.trim(), true]);
    expect((await forge.findPullRequest(address, "work", "main", signal()))?.headSha).toBe(sha.trim());
  });

  it.each([
    ["pushed to", (name: string) => server.commit("acme", name, "work", { "c.txt": "c\n" }), false],
    ["rewritten", rewrite, true],
  ] as const)("has the whole hash of its head, if its branch is %s while it is read", async (_, move, isNew) => {
    const { name, forge, address } = await setting();
    const before = tip(name);
    const { number } = await forge.openPullRequest(address, request, signal());
    const { fetch } = globalThis;
    let moves = 0;
    const asking = vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const { href } = new URL(input instanceof Request ? input.url : input);
      if (href.includes("/commits?") && (moves += 1) === 1) await move(name);
      return fetch(input, init);
    });
    const read = await forge.readPullRequest(address, number, signal()).finally(() => asking.mockRestore());
    expect([moves > 0, tip(name) === before]).toEqual([true, false]);
    expect(read.headSha).toBe(isNew ? tip(name) : before);
  });

  const tip = (name: string): string => git(name, ["rev-parse", "work"]);
  const git = (name: string, parameters: readonly string[]): string =>
    execFileSync("git", ["-C", server.pathOf("acme", name), ...parameters], { encoding: "utf8" }).trim();

  function rewrite(name: string): Promise<void> {
    const person = ["-c", "user.name=ann", "-c", "user.email=ann@acme.example"];
    const other = git(name, [...person, "commit-tree", "-p", "main", "-m", "Another", "work^{tree}"]);
    git(name, ["update-ref", "refs/heads/work", other]);
    return Promise.resolve();
  }

  it("is said to collide to an access token, and to an API token nothing, whom Bitbucket does not tell", async () => {
    const { name, forge, address } = await setting();
    await server.commit("acme", name, "work", { "a.txt": "ours\n" });
    await server.commit("acme", name, "main", { "a.txt": "theirs\n" });
    const { number } = await forge.openPullRequest(address, request, signal());
    expect(await forge.readPullRequest(address, number, signal())).toMatchObject({ mergeable: false });
    const other = bitbucket(server, "me@acme.example");
    expect(await other.readPullRequest(address, number, signal())).toMatchObject({ mergeable: null });
  });
});

describe("a pull request of Bitbucket Data Center", () => {
  const signal = () => AbortSignal.timeout(hangTimeoutMs);
  const work = { sessionId: "0198c1f0-0000-7000-8000-000000000001", sha: "a".repeat(40), askedMsAgo: null };
  const asked = { ...work, beforeAsking: () => Promise.resolve() };

  async function setting() {
    const name = `center-${(count += 1)}`;
    await server.createRepository("acme", name, { "a.txt": "a\n" });
    await server.commit("acme", name, "work", { "b.txt": "b\n" });
    return { name, forge: dataCenter(server) };
  }
  const request = { head: "work", target: "main", title: "Work", body: "Words" };

  it.each(["scm/acme/NAME", "scm/acme/NAME.git", "projects/acme/repos/NAME"])(
    "is one by each address: %s",
    async (path) => {
      const { name, forge } = await setting();
      const url = `${server.url}/${path.replace("NAME", name)}`;
      const address = parseRepositoryUrl(url) as RepositoryAddress;
      expect(await forge.openPullRequest(address, request, signal())).toMatchObject({
        number: 1,
        url: `${server.url}/projects/acme/repos/${name}/pull-requests/1`,
      });
    },
  );

  it("of a text that is too long for it loses from the middle, and keeps the marks", async () => {
    const { name, forge } = await setting();
    const address = parseRepositoryUrl(`${server.url}/scm/acme/${name}`) as RepositoryAddress;
    const body = `${"x".repeat(40_000)}\n<!-- offstage ${work.sha} --><!-- /offstage -->\n\n---\nMade by a session.`;
    const { number, mark } = await forge.openPullRequest(address, { ...request, body, work: asked }, signal());
    expect(mark).toEqual({ sessionId: work.sessionId, sha: work.sha });
    const [{ body: kept } = { body: "" }] = await server.pullRequests("acme", name);
    expect([kept.length <= 32_768, kept.includes("(cut)"), kept.includes("Made by a session.")]).toEqual([
      true,
      true,
      true,
    ]);
    // A text that would not fit stays as it is.
    await forge.editPullRequest(address, number, (text) => `${text}${"y".repeat(1_000)}`, signal());
    expect((await server.pullRequests("acme", name))[0]?.body).toBe(kept);
  });

  it("goes together with its target or collides with it, as is computed when it is asked", async () => {
    const { name, forge } = await setting();
    const address = parseRepositoryUrl(`${server.url}/scm/acme/${name}`) as RepositoryAddress;
    const { number } = await forge.openPullRequest(address, request, signal());
    expect(await forge.readPullRequest(address, number, signal())).toMatchObject({ mergeable: true });
    await server.commit("acme", name, "work", { "a.txt": "ours\n" });
    await server.commit("acme", name, "main", { "a.txt": "theirs\n" });
    expect(await forge.readPullRequest(address, number, signal())).toMatchObject({ mergeable: false });
  });
});

describe("a forge that does not let us in", () => {
  const address = () => parseRepositoryUrl(`${server.url}/acme/shop-1`) as RepositoryAddress;
  const azureAddress = () => parseRepositoryUrl(`${server.url}/acme/_git/shop-1`) as RepositoryAddress;
  const signal = () => AbortSignal.timeout(hangTimeoutMs);

  it.each([
    ["Azure DevOps", () => azure({ ...server, token: "wrong" })],
    ["GitHub", () => createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: "wrong" })],
    ["GitLab", () => gitlab({ ...server, token: "wrong" })],
    ["Gitea", () => gitea({ ...server, token: "wrong" })],
    ["Bitbucket", () => bitbucket({ ...server, token: "wrong" })],
    ["Bitbucket Data Center", () => dataCenter({ ...server, token: "wrong" })],
  ])("is reported as refused access: %s", async (kind, create) => {
    const at = kind === "Azure DevOps" ? azureAddress() : address();
    await expect(create().findPullRequest(at, "work", "main", signal())).rejects.toMatchObject({
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

describe("a GitHub App", () => {
  async function setting(registered: Partial<Parameters<TestForge["registerApp"]>[0]>) {
    const forge = await startForge();
    forge.registerApp({ ...app, ...registered });
    const { url } = await forge.createRepository("acme", "shop", { "a.txt": "a\n" });
    const settings = { kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl } as const;
    const github = createGitHub({ ...settings, app: { id: "7", privateKey: app.privateKey } });
    return { forge, github, address: parseRepositoryUrl(url) as RepositoryAddress };
  }
  const signal = (): AbortSignal => AbortSignal.timeout(hangTimeoutMs);

  it.each([3_600_000, -3_600_000])(
    "signs by the forge's clock if this machine's is off by %d ms",
    async (clockAheadMs) => {
      const { forge, github, address } = await setting({ clockAheadMs });
      expect(await github.credentials(address, signal())).toMatchObject({ username: "x-access-token" });
      // It got that answer once, and remembers it.
      expect(forge.asked()).toHaveLength(3);
      await forge.close();
    },
  );

  it("waits until the forge knows a token that it has just given", async () => {
    const { forge, github, address } = await setting({ knowsTokensAfterMs: 1_500 });
    expect(await github.findPullRequest(address, "work", "main", signal())).toBeNull();
    await forge.close();
  });

  it("renews its token before the hour for which it is valid is over, and not at each push", async () => {
    const { forge, github, address } = await setting({});
    const began = performance.now();
    const tokenAfter = async (minutes: number): Promise<unknown> => {
      vi.spyOn(performance, "now").mockReturnValue(began + minutes * 60_000);
      const given = await github.credentials(address, signal());
      vi.restoreAllMocks();
      return given?.password;
    };
    const first = await tokenAfter(0);
    expect(await tokenAfter(45)).toBe(first);
    // What is begun with it may take some minutes.
    const second = await tokenAfter(55);
    expect(second).not.toBe(first);
    expect(await tokenAfter(100)).toBe(second);
    expect(await tokenAfter(110)).not.toBe(second);
    await forge.close();
  });

  it("gets another token in the place of one that the forge does not take any more", async () => {
    const { forge, github, address } = await setting({});
    const find = () => github.findPullRequest(address, "work", "main", signal());
    expect(await find()).toBeNull();
    forge.forgetAppTokens();
    // It is none that the forge may only not know yet.
    const now = performance.now();
    vi.spyOn(performance, "now").mockReturnValue(now + 60_000);
    expect(await find()).toBeNull();
    vi.restoreAllMocks();
    await forge.close();
  });
});

describe("a forge that asks to be left alone", () => {
  it.each([
    [
      "since it was asked too quickly",
      422,
      {
        message: "Validation Failed",
        errors: [{ resource: "PullRequest", code: "custom", message: "was submitted too quickly" }],
      },
    ],
    [
      "by its detection of abuse",
      403,
      { message: "You have triggered an abuse detection mechanism. Please wait a few minutes before you try again." },
    ],
  ])("%s, without a time, is left alone for a minute", async (_, status, body) => {
    const { url } = await server.createRepository("acme", `limited-${(count += 1)}`, { "a.txt": "a\n" });
    const github = createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: server.token });
    // A few tries come first.
    for (let nth = 0; nth < 4; nth += 1) await server.failNext({ kind: "status", status, body });
    const asking = github.readPullRequest(
      parseRepositoryUrl(url) as RepositoryAddress,
      1,
      AbortSignal.timeout(hangTimeoutMs),
    );
    await expect(asking).rejects.toMatchObject({
      code: "forge_unavailable",
      passing: true,
      retryAfterMs: 60_000,
      isOpen: false,
    });
  });

  it("with 408 is asked again", async () => {
    const { url } = await server.createRepository("acme", `limited-${(count += 1)}`, { "a.txt": "a\n" });
    const github = createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: server.token });
    await server.failNext({ kind: "status", status: 408 });
    const address = parseRepositoryUrl(url) as RepositoryAddress;
    expect(await github.findPullRequest(address, "work", "main", AbortSignal.timeout(hangTimeoutMs))).toBeNull();
  });
});

describe("a forge that is down", () => {
  it("is reported as unavailable after a few tries, and that a retry can help", async () => {
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
