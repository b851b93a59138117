import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectionStateOf, type ConnectionCredential } from "../../src/domain/repositories/connection.ts";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { checkConnection } from "../../src/forges/connections/check-connection.ts";
import { appEvents, appPermissions } from "../../src/forges/github/check.ts";
import type { Forge } from "../../src/forges/forge.ts";
import {
  createOrganizationForges,
  type ForgeConnection,
  type GuardedReach,
} from "../../src/forges/connections/organization-forges.ts";
import { readConfig } from "../../src/config/config.ts";
import { createForgeReach } from "../../src/server/open-forges.ts";
import { createGuardedFetch } from "../../src/gateway/egress/guarded-fetch.ts";
import { createMask } from "../../src/domain/masking/mask.ts";
import { withOwnForges } from "../../src/worker/attempt/own-forges.ts";
import { asAzure } from "../forge/azure-url.ts";
import { createTestApp } from "../forge/github-app.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let forge: TestForge;
const setting = "OFFSTAGE_FORGE_HOSTS";
const reach = createGuardedFetch({ privateHosts: ["127.0.0.1"], setting });
const publicOnly = createGuardedFetch({ privateHosts: [], setting });

beforeAll(async () => {
  forge = await startForge();
  await forge.createRepository("acme", "shop", { "a.txt": "a\n" });
});
afterEach(() => {
  forge.setScopes(null);
  forge.setGranted(null);
  forge.setGiteaScopes(null);
  forge.setAzureScopes(null);
  forge.setBitbucketScopes(null);
  forge.setDataCenterWrites(true);
});
afterAll(() => forge?.close());

type Kind = "azure" | "github" | "gitlab" | "gitea" | "bitbucket" | "bitbucketDataCenter" | "git";
const at = (kind: Kind) => ({
  kind,
  webUrl: kind === "azure" ? `${forge.url}/acme` : forge.url,
  apiUrl: {
    azure: forge.url,
    github: forge.apiUrl,
    gitlab: `${forge.url}/api/v4`,
    gitea: `${forge.url}/api/v1`,
    bitbucket: `${forge.url}/2.0`,
    bitbucketDataCenter: `${forge.url}/rest/api/latest`,
    git: null,
  }[kind],
});
const token = (value = forge.token): ConnectionCredential => ({ type: "token", token: value });

async function check(kind: Kind, credential: ConnectionCredential | Error = token(), from = reach) {
  const signal = AbortSignal.timeout(hangTimeoutMs);
  const found = await checkConnection(at(kind), credential, { reach: from, configured: [], signal });
  return {
    account: found.account,
    state: connectionStateOf(found.problems),
    missing: found.problems.map(({ missing }) => missing),
    problems: found.problems,
    installUrl: found.installUrl,
  };
}

describe("a check of a token of Azure DevOps", () => {
  const all = ["vso.code_write", "vso.work_write", "vso.build", "vso.identity"];

  it("names each scope that it lacks, and makes nothing", async () => {
    const before = forge.asked().length;
    forge.setAzureScopes(all);
    expect(await check("azure")).toMatchObject({ account: "tester@example.com", state: "ok", missing: [] });
    forge.setAzureScopes(["vso.code_write"]);
    const missing = ["Work Items: Read & write", "Build: Read", "Identity: Read"];
    expect(await check("azure")).toMatchObject({ state: "degraded", missing });
    forge.setAzureScopes(["vso.code", ...all.slice(1)]);
    expect(await check("azure")).toMatchObject({ state: "broken", missing: ["Code: Read & write"] });
    const asked = forge.asked().slice(before);
    expect(asked.filter((each) => each.startsWith("POST"))).toHaveLength(6);
    const nothing = "00000000-0000-0000-0000-000000000000";
    expect(asked.filter((each) => each.startsWith("POST") && !each.includes(nothing))).toEqual([]);
  });

  it("says that a wrong token is refused, though the forge shows a page to sign in", async () => {
    const { state, missing, problems } = await check("azure", token("wrong"));
    expect([state, missing]).toEqual(["broken", ["a valid token"]]);
    expect(problems[0]?.why).toContain("page to sign in");
  });

  it("wants an organization, and says that an address has no such API", async () => {
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const asked = (addresses: object) =>
      checkConnection({ ...at("azure"), ...addresses }, token(), { reach, configured: [], signal });
    expect((await asked({ webUrl: forge.url })).problems).toMatchObject([
      { missing: "an organization in the address", essential: true },
    ]);
    expect((await asked({ apiUrl: `${forge.url}/api/v4` })).problems).toMatchObject([
      { missing: "the API of Azure DevOps", essential: true },
    ]);
  });
});

describe("a check of a token of GitHub", () => {
  it("finds nothing missing of a classic token with all scopes, and says whose it is", async () => {
    forge.setScopes("repo, workflow");
    expect(await check("github")).toMatchObject({ account: "tester", state: "ok", missing: [] });
  });

  it.each([
    ["read:org", "broken", ["repo", "workflow"]],
    ["public_repo, workflow", "degraded", ["repo"]],
    ["repo", "degraded", ["workflow"]],
  ])("names each scope that %s lacks", async (scopes, state, missing) => {
    forge.setScopes(scopes);
    expect(await check("github")).toMatchObject({ state, missing });
  });

  it("tries what a fine-grained token may, and makes nothing", async () => {
    expect(await check("github")).toMatchObject({ account: "tester", state: "ok" });
    forge.setGranted(["contents", "pull_requests"]);
    expect(await check("github")).toMatchObject({
      state: "degraded",
      missing: ["Issues: write (on acme/shop)", "Commit statuses: write (on acme/shop)"],
    });
    forge.setGranted(["pull_requests", "issues", "statuses"]);
    expect(await check("github")).toMatchObject({ state: "broken", missing: ["Contents: write (on acme/shop)"] });
    expect(await forge.pullRequests("acme", "shop")).toEqual([]);
  });

  it("says that a wrong token is refused, in the forge's words", async () => {
    const { state, problems } = await check("github", token("wrong"));
    expect([state, problems[0]?.missing, problems[0]?.why]).toEqual([
      "broken",
      "a valid token",
      "GitHub refused it: Bad credentials.",
    ]);
  });

  it("says that an address has no such API", async () => {
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const wrong = { ...at("github"), apiUrl: `${forge.url}/nothing` };
    const { problems } = await checkConnection(wrong, token(), { reach, configured: [], signal });
    expect(problems).toMatchObject([{ missing: "GitHub's API", essential: true }]);
  });
});

describe("a check of a GitHub App", () => {
  const registered = createTestApp(9);
  const credential: ConnectionCredential = { type: "app", appId: "9", privateKey: registered.privateKey };
  const permissions = appPermissions as Record<string, string>;

  it("is content with an App that is installed, and knows where it is installed further", async () => {
    forge.registerApp({ ...registered, permissions, events: appEvents, installations: [{ account: "acme" }] });
    expect(await check("github", credential)).toMatchObject({
      account: "offstage-9",
      state: "ok",
      installUrl: `${forge.url}/apps/offstage-9/installations/new`,
    });
  });

  it("asks for an App that may set commit statuses, and hears of those of others", () => {
    expect([permissions["statuses"], appEvents]).toEqual(["write", expect.arrayContaining(["status"])]);
  });

  it("names what the App lacks, and what an installation has not accepted", async () => {
    const { workflows: _, ...accepted } = permissions;
    forge.registerApp({
      ...registered,
      permissions,
      events: appEvents.filter((event) => event !== "release"),
      installations: [
        { account: "acme", permissions: accepted },
        { account: "other", suspended: true },
      ],
    });
    expect(await check("github", credential)).toMatchObject({
      state: "degraded",
      missing: ["events: release", "Workflows: write (on acme)", "the installation on other"],
    });
    const { contents: __, ...withoutContents } = permissions;
    forge.registerApp({ ...registered, permissions: withoutContents, events: appEvents });
    expect(await check("github", credential)).toMatchObject({
      state: "broken",
      missing: ["Contents: write", "an installation"],
    });
  });

  it("refuses another App's key, and what is no key", async () => {
    forge.registerApp({ ...registered, permissions, events: appEvents });
    const { privateKey } = createTestApp(10);
    expect(await check("github", { ...credential, privateKey })).toMatchObject({ state: "broken" });
    expect(await check("github", { ...credential, privateKey: "none" })).toMatchObject({
      state: "broken",
      missing: ["the App's private key"],
    });
  });
});

describe("a check of a token of GitLab", () => {
  const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

  it("says which scope it lacks, and that it ends soon", async () => {
    forge.setGitLabToken({ scopes: ["api"], expiresOn: inDays(60) });
    expect(await check("gitlab")).toMatchObject({ account: "tester", state: "ok", missing: [] });
    forge.setGitLabToken({ scopes: ["api"], expiresOn: inDays(5) });
    expect(await check("gitlab")).toMatchObject({ state: "degraded", missing: ["a token that lasts"] });
    forge.setGitLabToken({ scopes: ["read_api", "write_repository"], expiresOn: null });
    expect(await check("gitlab")).toMatchObject({ state: "broken", missing: ["api"] });
  });

  it("says that a wrong token is refused", async () => {
    expect(await check("gitlab", token("wrong"))).toMatchObject({ state: "broken", missing: ["a valid token"] });
  });
});

describe("a check of a token of Gitea", () => {
  it("names each scope that it lacks", async () => {
    forge.setGiteaScopes(["write:repository", "write:issue", "read:user"]);
    expect(await check("gitea")).toMatchObject({ account: "tester", state: "ok", missing: [] });
    forge.setGiteaScopes(["write:repository"]);
    expect(await check("gitea")).toMatchObject({ state: "degraded", missing: ["write:issue", "read:user"] });
    forge.setGiteaScopes(["read:repository", "write:issue", "read:user"]);
    expect(await check("gitea")).toMatchObject({ state: "broken", missing: ["write:repository"] });
  });

  it("says that a wrong token is refused", async () => {
    expect(await check("gitea", token("wrong"))).toMatchObject({ state: "broken", missing: ["a valid token"] });
  });
});

describe("a check of a token of Bitbucket Cloud", () => {
  const apiToken = (value = forge.token): ConnectionCredential => ({
    type: "token",
    token: value,
    username: "me@acme.example",
  });

  it("names each scope that an access token lacks, which need not tell whose it is", async () => {
    forge.setBitbucketScopes(["pullrequest:write", "pipeline"]);
    expect(await check("bitbucket")).toMatchObject({ account: null, state: "ok", missing: [] });
    forge.setBitbucketScopes(["repository:write", "pullrequest", "account"]);
    expect(await check("bitbucket")).toMatchObject({
      account: "tester",
      state: "broken",
      missing: ["pullrequest:write", "pipeline"],
    });
    forge.setBitbucketScopes(["pullrequest:write"]);
    expect(await check("bitbucket")).toMatchObject({ state: "degraded", missing: ["pipeline"] });
  });

  it("names those of an API token as Bitbucket calls them, to read and to write", async () => {
    const all = ["read:repository", "write:repository", "read:pullrequest", "write:pullrequest", "read:pipeline"];
    forge.setBitbucketScopes([...all, "read:user"].map((scope) => `${scope}:bitbucket`));
    expect(await check("bitbucket", apiToken())).toMatchObject({ account: "tester", state: "ok", missing: [] });
    forge.setBitbucketScopes(all.slice(1, 4).map((scope) => `${scope}:bitbucket`));
    expect(await check("bitbucket", apiToken())).toMatchObject({
      account: null,
      state: "broken",
      missing: ["read:repository:bitbucket", "read:pipeline:bitbucket", "read:user:bitbucket"],
    });
  });

  it("accepts a token whose scopes are not reported", async () => {
    expect(await check("bitbucket", apiToken())).toMatchObject({ account: "tester", state: "ok", missing: [] });
  });

  it("says that a wrong token is refused", async () => {
    expect(await check("bitbucket", apiToken("wrong"))).toMatchObject({ state: "broken", missing: ["a valid token"] });
    expect(await check("bitbucket", token("wrong"))).toMatchObject({ state: "broken", missing: ["a valid token"] });
  });

  it("says that an address has no such API", async () => {
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const wrong = { ...at("bitbucket"), apiUrl: `${forge.url}/nothing` };
    const { problems } = await checkConnection(wrong, token(), { reach, configured: [], signal });
    expect(problems).toMatchObject([{ missing: "Bitbucket's API", essential: true }]);
  });
});

describe("a check of a token of Bitbucket Data Center", () => {
  it("says whose it is, and that it may only read", async () => {
    expect(await check("bitbucketDataCenter")).toMatchObject({ account: "tester", state: "ok", missing: [] });
    forge.setDataCenterWrites(false);
    expect(await check("bitbucketDataCenter")).toMatchObject({ state: "broken", missing: ["Repository write"] });
  });

  it("says that a wrong token is refused, and that an address has no such API", async () => {
    expect(await check("bitbucketDataCenter", token("wrong"))).toMatchObject({
      state: "broken",
      missing: ["a valid token"],
    });
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const wrong = { ...at("bitbucketDataCenter"), apiUrl: `${forge.url}/nothing` };
    const { problems } = await checkConnection(wrong, token(), { reach, configured: [], signal });
    expect(problems).toMatchObject([{ missing: "Bitbucket's API", essential: true }]);
  });
});

describe("odd answers to a check", () => {
  let odd: Server;
  let url: string;
  const answers = new Map<string, string>();
  beforeAll(async () => {
    odd = createServer((request, response) => void response.end(answers.get(request.url ?? "") ?? "{}"));
    await new Promise<void>((resolve) => odd.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(odd.address() as AddressInfo).port}`;
  });
  afterEach(() => answers.clear());
  afterAll(() => {
    odd.closeAllConnections();
    odd.close();
  });
  const asked = (kind: Kind, credential = token()) =>
    checkConnection({ kind, webUrl: url, apiUrl: url }, credential, {
      reach,
      configured: [],
      signal: AbortSignal.timeout(hangTimeoutMs),
    });
  const { privateKey } = createTestApp(12);
  const app: ConnectionCredential = { type: "app", appId: "12", privateKey };

  it.each(["<html>", "null", '{"scopes":7,"expires_at":[]}'])("of GitLab about its token: %s", async (answer) => {
    answers.set("/user", '{"username":"somebody"}');
    answers.set("/personal_access_tokens/self", answer);
    expect(await asked("gitlab")).toEqual({ account: "somebody", accountId: null, problems: [] });
  });

  it("of GitHub about installations and repositories", async () => {
    answers.set("/app", JSON.stringify({ slug: "ours", html_url: `${url}/apps/ours`, permissions: [], events: "all" }));
    answers.set("/app/installations?per_page=100", '[{"account":{"login":"acme"}},null,7]');
    const { account, problems } = await asked("github", app);
    expect(account).toBe("ours");
    expect(problems.map(({ missing }) => missing)).toContain("Contents: write");
    answers.set("/user", '{"login":"somebody"}');
    answers.set("/user/repos?per_page=50&sort=pushed", '[null,7,{"permissions":{"push":true}}]');
    expect((await asked("github")).problems).toMatchObject([{ missing: "access to a repository" }]);
  });

  it("are bounded, can be stored, and lead to no other server", async () => {
    const slug = `a\0b${"x".repeat(5_000)}`;
    answers.set("/app", JSON.stringify({ slug, html_url: "https://elsewhere.example/apps/ours" }));
    const found = await asked("github", app);
    expect([found.account?.slice(0, 3), found.account?.length, found.installUrl]).toEqual(["abx", 200, null]);
    answers.set("/app", JSON.stringify({ slug: "ours", html_url: `${url}/${"x".repeat(1_965)}` }));
    expect((await asked("github", app)).installUrl).toBeNull();
    answers.set("/app", JSON.stringify({ slug: "ours", html_url: "javascript:alert(1)" }));
    expect((await asked("github", app)).installUrl).toBeNull();
  });
});

describe("what an organization names", () => {
  it("is not contacted in a private network or without encryption, unless the operator lists the host", async () => {
    const before = forge.asked().length;
    const refused = await check("github", token(), publicOnly);
    expect(refused).toMatchObject({ state: "broken", missing: ["encryption"] });
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const encrypted = { kind: "github", webUrl: "https://github.com", apiUrl: "https://127.0.0.1:1/api" } as const;
    const { problems } = await checkConnection(encrypted, token(), { reach: publicOnly, configured: [], signal });
    expect(problems[0]?.why).toContain("127.0.0.1 is not contacted: it is in a private network");
    await expect(publicOnly.fetch(`${forge.apiUrl}/user`, {})).rejects.toThrow("not encrypted");
    expect(forge.asked()).toHaveLength(before);
    expect((await reach.fetch(`${forge.apiUrl}/user`, {})).status).toBe(401);
  });

  it("is reached in a private network at the port of the operator's forge alone", async () => {
    const variables = {
      OFFSTAGE_FORGES: JSON.stringify([
        { kind: "gitea", webUrl: forge.url, apiUrl: `${forge.url}/api/v1`, token: "x" },
      ]),
    };
    const own = createForgeReach(readConfig(variables));
    const other = createServer((_, response) => void response.end("{}"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    try {
      expect((await own.fetch(`${forge.apiUrl}/user`, {})).status).toBe(401);
      await expect(own.fetch(`http://127.0.0.1:${port}/`, {})).rejects.toMatchObject({
        code: "repository_unreachable",
      });
      await expect(own.fetch(`https://127.0.0.1:${port}/`, {})).rejects.toMatchObject({
        code: "repository_unreachable",
      });
      expect([own.mayBePrivate(forge.url), own.mayBePrivate(`http://127.0.0.1:${port}`)]).toEqual([true, false]);
      const listed = createForgeReach(readConfig({ ...variables, OFFSTAGE_FORGE_HOSTS: "127.0.0.1" }));
      expect((await listed.fetch(`http://127.0.0.1:${port}/`, {})).status).toBe(200);
    } finally {
      other.closeAllConnections();
      other.close();
    }
  });

  describe("answers as it likes", () => {
    let hostile: Server;
    let url: string;
    let redirected = 0;
    beforeAll(async () => {
      hostile = createServer((request, response) => {
        const { authorization = "" } = request.headers;
        if (request.url === "/elsewhere") redirected += 1;
        if (request.url === "/redirect/user") response.writeHead(302, { Location: `${url}/elsewhere` }).end();
        else if (request.url === "/endless/user") {
          const more = (): void => void response.write("x".repeat(1024 * 1024), () => !response.destroyed && more());
          response.writeHead(200);
          more();
        } else response.writeHead(403).end(JSON.stringify({ message: `I got ${authorization} ${"y".repeat(5_000)}` }));
      });
      await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
      url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
    });
    afterAll(() => {
      hostile.closeAllConnections();
      hostile.close();
    });
    const asked = (path: string) =>
      checkConnection({ kind: "github", webUrl: url, apiUrl: `${url}${path}` }, token("ghp_very-secret-value"), {
        reach,
        configured: [],
        signal: AbortSignal.timeout(hangTimeoutMs),
      });

    it("does not bring the token into what is shown, which is bounded", async () => {
      const { problems } = await asked("/echo");
      expect(problems[0]?.why).toContain("I got Bearer [secret]");
      expect(JSON.stringify(problems)).not.toContain("very-secret");
      expect(problems[0]?.why.length).toBeLessThan(1_100);
    });

    it("does not bring the token into what is shown as basic authentication has it", async () => {
      const secret = "very-secret-value";
      const addresses = { kind: "azure", webUrl: `${url}/acme`, apiUrl: url } as const;
      const signal = AbortSignal.timeout(hangTimeoutMs);
      const { problems } = await checkConnection(addresses, token(secret), { reach, configured: [], signal });
      expect(problems[0]?.why).toContain("I got Basic ");
      const encoded = Buffer.from(`:${secret}`).toString("base64");
      expect(JSON.stringify(problems)).not.toContain(encoded.slice(4, -4));
    });

    it("does not lead the token elsewhere", async () => {
      const { problems } = await asked("/redirect");
      expect(problems[0]?.why).toContain("answered 302");
      expect(redirected).toBe(0);
    });

    it("is not read without end", async () => {
      await expect(reach.fetch(`${url}/endless/user`, {})).rejects.toMatchObject({
        cause: expect.objectContaining({ message: "its answer is too large" }) as Error,
      });
    });
  });
});

describe.each(["azure", "github", "gitlab", "gitea", "bitbucket", "bitbucketDataCenter"] as const)(
  "a connection for one owner on %s",
  (kind) => {
    const owner = kind === "gitlab" || kind === "azure" ? "acme/tools" : "acme";
    const address = (url: string) => parseRepositoryUrl(kind === "azure" ? asAzure(url) : url) as RepositoryAddress;
    // Forks need a person's token.
    const username = kind === "bitbucket" ? { username: "me@acme.example" } : {};

    it("asks about the owner's repositories, and forks with its own credential", async () => {
      const credential = { ...token(), ...username } as ConnectionCredential;
      const name = `owned-${kind}`;
      const { url } = await forge.createRepository(owner, name, { "a.txt": "a\n" });
      await forge.commit(owner, name, "work", { "b.txt": "b\n" });
      const connected = { ...at(kind), webUrl: `${forge.url}/${owner}`, id: "1", revision: "1", credential };
      const forges = createOrganizationForges({
        usesConfigured: () => Promise.resolve(true),
        configured: [{ ...at(kind), token: "of-the-operator" } as never],
        load: () => Promise.resolve([connected]),
        reach,
        refused: () => undefined,
      });
      const signal = AbortSignal.timeout(hangTimeoutMs);
      const of = await forges.of("1");
      const repository = address(url);
      const served = of.forgeOf(repository);
      expect(served.webUrl).toBe(`${forge.url}/${owner}`);
      const before = forge.asked().length;
      expect(await served.readAccess(repository, "main", signal)).not.toBeNull();
      const request = { head: "work", target: "main", title: "Work", body: "Words" };
      expect(await served.openPullRequest(repository, request, signal)).toMatchObject({ created: true });
      expect(await forge.pullRequests(owner, name)).toHaveLength(1);
      const fork = await served.fork(repository, signal);
      // On Azure DevOps a fork stays in the project.
      const made =
        { azure: `${owner}/_git/${name}.tester`, bitbucketDataCenter: `scm/~tester/${name}.git` }[kind as string] ??
        `tester/${name}`;
      expect(fork.cloneUrl).toBe(`${forge.url}/${made}`);
      // A second call finds it.
      expect((await served.fork(repository, signal)).cloneUrl).toBe(fork.cloneUrl);
      const asked = forge.asked().slice(before);
      expect(
        asked.filter(
          (each) => /\/(?:repos|projects|repositories)\//u.test(each) && !decodeURIComponent(each).includes(`/${name}`),
        ),
      ).toEqual([]);
      const attempt = await withOwnForges(
        { forgesOf: forges.of, forgeOf: of.forgeOf, mask: createMask([]), repositoryKeyOf: of.keyOf },
        { organizationId: "1" },
      );
      const given = await attempt.forgeOf(repository).credentials(fork, signal);
      expect(given?.password).toBe(forge.token);
    });
  },
);

describe("the guard of a connection", () => {
  const asked: string[] = [];
  const recording = {
    mayBePrivate: () => true,
    fetch: (url: string) => {
      asked.push(url);
      return Promise.resolve(new Response("{}", { status: 418 }));
    },
  };
  const silent = new Set([
    "azure failedJobs",
    "bitbucket react",
    "bitbucketDataCenter react",
    "bitbucketDataCenter readLogEnd",
  ]);
  const own = { id: "1", revision: "1", credential: token("of-acme") } as const;
  const forgesOf = (connection: ForgeConnection, from: GuardedReach = recording) =>
    createOrganizationForges({
      usesConfigured: () => Promise.resolve(true),
      configured: [],
      load: () => Promise.resolve([connection]),
      reach: from,
      refused: () => undefined,
    }).of("1");

  it.each(["azure", "github", "gitlab", "gitea", "bitbucket", "bitbucketDataCenter"] as const)(
    "holds for every method of %s",
    async (kind) => {
      const apiUrl = "http://api.invalid/api/v4";
      const connection = { ...own, kind, webUrl: "http://forge.invalid", apiUrl };
      const of = await forgesOf(connection);
      const broken = await forgesOf({ ...connection, credential: new Error("no key") });
      const written = "http://forge.invalid/acme/shop";
      const address = parseRepositoryUrl(kind === "azure" ? asAzure(written) : written) as RepositoryAddress;
      const methods = (served: Forge) => [
        ...Object.entries(served).filter(
          ([name]) => !["serves", "credentials", "issuedTokens", "pullRequestRef", "commitPage", "as"].includes(name),
        ),
        ...Object.entries(served.feedback ?? {}),
      ];
      const calls = methods(of.forgeOf(address)).filter(([, value]) => typeof value === "function");
      expect(calls.length).toBeGreaterThanOrEqual(12);
      const signal = AbortSignal.timeout(hangTimeoutMs);
      const subject = { kind: "pullRequest", number: 1, subject: { kind: "pullRequest", number: 1 }, id: "1" };
      const given: Record<string, unknown[]> = {
        comment: [subject, { key: "k", text: "t", since: new Date() }],
        reply: [subject, { key: "k", text: "t", since: new Date() }],
        // Azure DevOps has none to what is no comment.
        react: [{ ...subject, commentId: kind === "azure" ? "7.1" : null, isOnLines: false }, "eyes"],
        readThread: [{ ...subject, commentId: "2", threadId: "1", isOnLines: true }],
        readPlace: [{ ...subject, commentId: "2", threadId: "1", path: "a.txt", line: 1 }],
        parentsOf: ["a".repeat(40)],
        setStatus: ["abc", { state: "pending", name: "n", description: "d", url: "u" }],
        resolve: [subject],
        add: [1, { field: "reviewers", names: ["ada"] }],
        readApprovalRules: ["main"],
        readLogEnd: ["1", 100],
        failedJobs: [
          {
            kind: { gitlab: "pipeline", azure: "build", bitbucket: "status" }[kind as string] ?? "workflow",
            id: "1",
            sha: "a".repeat(40),
          },
        ],
        mayWrite: [{ id: "1", login: "somebody" }],
        call: ["GET", ""],
        findPullRequest: ["work", "main"],
        openPullRequest: [{ head: "work", target: "main", title: "t", body: "b" }],
        readPullRequest: [1],
        editPullRequest: [1, () => null],
        readAccess: ["main"],
        fork: [],
      };
      for (const [name, call] of calls) {
        asked.length = 0;
        const tell = (call as (...all: unknown[]) => Promise<unknown>)(address, ...(given[name] ?? []), signal);
        await tell.catch(() => undefined);
        // Bitbucket Cloud has no reactions to ask for; Data Center has them to comments alone, and no logs; a build of Azure DevOps is
        // its own job.
        const isAsked = asked.length > 0 || silent.has(`${kind} ${name}`);
        expect([name, isAsked, asked.every((url) => url.startsWith(apiUrl))]).toEqual([name, true, true]);
      }
      for (const [name, call] of methods(broken.forgeOf(address)).filter(([, value]) => typeof value === "function")) {
        const tell = (call as (...all: unknown[]) => Promise<unknown>)(address, ...(given[name] ?? []), signal);
        await expect(tell).rejects.toMatchObject({ code: "secret_unavailable" });
      }
    },
  );

  it("holds for both addresses of a log", async () => {
    const url = "https://forge.invalid/a/b";
    const elsewhere: string[] = [];
    const of = await forgesOf(
      { ...own, kind: "github", webUrl: "https://forge.invalid", apiUrl: "https://api.invalid" },
      {
        mayBePrivate: () => false,
        fetch: (address, { headers }) => {
          elsewhere.push(`${address} ${new Headers(headers).has("authorization")}`);
          if (address !== "https://10.0.0.1/log") {
            return Promise.resolve(new Response(null, { status: 302, headers: { Location: "https://10.0.0.1/log" } }));
          }
          return publicOnly.fetch(address, {});
        },
      },
    );
    const address = parseRepositoryUrl(url) as RepositoryAddress;
    const signal = AbortSignal.timeout(hangTimeoutMs);
    await expect(of.forgeOf(address).feedback?.readLogEnd(address, "1", 100, signal)).rejects.toMatchObject({
      code: "repository_unreachable",
    });
    expect(elsewhere).toEqual(["https://api.invalid/repos/a/b/actions/jobs/1/logs true", "https://10.0.0.1/log false"]);
  });

  it("reads the end of a log, and none that is too long", async () => {
    const sizes: Record<string, string> = { "1": "first\nlast\n", "2": `${"x".repeat(17 * 1024 * 1024)}\n` };
    const server = createServer((request, response) => {
      response.end(sizes[/jobs\/(\d)\//u.exec(request.url ?? "")?.[1] ?? ""] ?? "");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const of = await forgesOf({ ...own, kind: "gitea", webUrl: url, apiUrl: `${url}/api/v1` }, reach);
    const address = parseRepositoryUrl(`${url}/a/b`) as RepositoryAddress;
    const read = (job: string) =>
      of.forgeOf(address).feedback?.readLogEnd(address, job, 8, AbortSignal.timeout(hangTimeoutMs));
    expect([await read("1"), await read("2")]).toEqual(["last\n", null]);
    server.closeAllConnections();
    server.close();
  });
});

describe("an attempt", () => {
  it("calls a forge with the token as it is now, and masks each that it had", async () => {
    await forge.createRepository("acme", "replaced", { "a.txt": "a\n" });
    const address = parseRepositoryUrl(`${forge.url}/acme/replaced`) as RepositoryAddress;
    let stored: ForgeConnection = { ...at("github"), id: "1", revision: "1", credential: token("replaced-token-1") };
    const forges = createOrganizationForges({
      usesConfigured: () => Promise.resolve(true),
      configured: [],
      load: () => Promise.resolve([stored]),
      reach,
      refused: () => undefined,
    });
    const { forgeOf, keyOf } = await forges.of("1");
    const services = { forgesOf: forges.of, forgeOf, mask: createMask(["of-the-server"]), repositoryKeyOf: keyOf };
    const own = await withOwnForges(services, { organizationId: "1" });
    const mask = own.mask.with(["of-the-session"]);
    const served = own.forgeOf(address);
    const signal = AbortSignal.timeout(hangTimeoutMs);
    await expect(served.readAccess(address, "main", signal)).rejects.toMatchObject({
      code: "repository_access_denied",
    });
    stored = { ...stored, revision: "2", credential: token() };
    forges.forget("1");
    expect(await served.readAccess(address, "main", signal)).toMatchObject({ mayPush: true });
    expect(await served.feedback?.mayWrite(address, { id: "1", login: "nobody" }, signal)).not.toBeUndefined();
    // The connection became one of plain git, which gives no answers: the forge of the beginning says what is wrong.
    stored = { ...stored, kind: "git", apiUrl: null, revision: "3" };
    forges.forget("1");
    await expect(served.feedback?.mayWrite(address, { id: "1", login: "nobody" }, signal)).rejects.toMatchObject({
      code: "repository_access_denied",
    });
    const said = `${forge.token} replaced-token-1 of-the-server of-the-session`;
    expect(mask.text(said)).toBe("[secret] [secret] [secret] [secret]");
    expect(mask.secrets).toEqual(["of-the-server", "replaced-token-1", "of-the-session", forge.token]);
  });

  it("masks the tokens of an App's installations", async () => {
    await forge.createRepository("acme", "installed", { "a.txt": "a\n" });
    const registered = createTestApp(11);
    forge.registerApp({ ...registered, installations: [{ account: "acme" }] });
    const address = parseRepositoryUrl(`${forge.url}/acme/installed`) as RepositoryAddress;
    const credential = { type: "app", appId: "11", privateKey: registered.privateKey } as const;
    const forges = createOrganizationForges({
      usesConfigured: () => Promise.resolve(true),
      configured: [],
      load: () => Promise.resolve([{ ...at("github"), id: "1", revision: "1", credential }]),
      reach,
      refused: () => undefined,
    });
    const { forgeOf, keyOf } = await forges.of("1");
    const services = { forgesOf: forges.of, forgeOf, mask: createMask([]), repositoryKeyOf: keyOf };
    const { mask, ...own } = await withOwnForges(services, { organizationId: "1" });
    const given = await own.forgeOf(address).credentials(address, AbortSignal.timeout(hangTimeoutMs));
    expect(given?.password.length).toBeGreaterThan(10);
    expect(mask.text(`It was ${given?.password}.`)).toBe("It was [secret].");
  });
});

describe("the forges of organizations", () => {
  const operator = {
    kind: "github",
    webUrl: "https://github.com",
    apiUrl: "https://api.github.com",
    token: "operator",
  };
  const connection = (over: Partial<ForgeConnection>): ForgeConnection => ({
    id: "1",
    kind: "github",
    webUrl: "https://github.com",
    apiUrl: "https://api.github.com",
    revision: "1",
    credential: { type: "token", token: "of-acme" },
    ...over,
  });
  let stored: Record<string, ForgeConnection[]>;
  let refused: string[];
  let forges: ReturnType<typeof createOrganizationForges>;
  beforeEach(() => {
    stored = { acme: [connection({})] };
    refused = [];
    forges = createOrganizationForges({
      usesConfigured: (id) => Promise.resolve(id !== "apart"),
      configured: [operator as never],
      load: (id) => Promise.resolve(stored[id] ?? []),
      reach,
      refused: (id) => void refused.push(id),
    });
  });
  const address = (url: string) => parseRepositoryUrl(url) as RepositoryAddress;
  const shop = "https://github.com/Acme/shop";
  async function passwordOf(organization: string, url = shop) {
    const served = (await forges.of(organization)).forgeOf(address(url));
    return (await served.credentials(address(url), AbortSignal.timeout(hangTimeoutMs)))?.password ?? null;
  }

  it("use an organization's own credential for it alone", async () => {
    expect([await passwordOf("acme"), await passwordOf("other")]).toEqual(["of-acme", "operator"]);
    expect((await forges.of("acme")).secrets()).toEqual(["of-acme"]);
  });

  it("give the operator's credential to no organization that may not use it, nor for a connection that names it", async () => {
    stored["apart"] = [];
    expect(await passwordOf("apart")).toBeNull();
    forges.forget("apart");
    stored["apart"] = [connection({ credential: { type: "configured" } })];
    expect(await passwordOf("apart")).toBeNull();
    forges.forget("apart");
    stored["apart"] = [connection({ credential: { type: "token", token: "of-apart" } })];
    expect(await passwordOf("apart")).toBe("of-apart");
    const { keyOf, integrationOf } = await forges.of("apart");
    expect([keyOf(address(shop)), integrationOf(shop)?.type]).toEqual(["github.com/acme/shop", "github"]);
  });

  it("serve an address by the longest that fits, whatever its capitals", async () => {
    const own = connection({
      id: "2",
      webUrl: "https://github.com/acme",
      credential: { type: "token", token: "owner" },
    });
    stored["acme"]?.push(own);
    expect([await passwordOf("acme"), await passwordOf("acme", "https://github.com/else/shop")]).toEqual([
      "owner",
      "of-acme",
    ]);
    const { keyOf } = await forges.of("acme");
    expect(keyOf(address(shop))).toBe("github.com/acme/shop");
  });

  it("take a change once it is notified, and keep what did not change", async () => {
    expect(await passwordOf("acme")).toBe("of-acme");
    stored["acme"] = [connection({ revision: "2", credential: { type: "token", token: "new" } })];
    expect(await passwordOf("acme")).toBe("of-acme");
    forges.forget("acme");
    expect(await passwordOf("acme")).toBe("new");
    stored["acme"] = [];
    forges.forget("");
    expect(await passwordOf("acme")).toBe("operator");
  });

  it("leave an address to the operator's credential if the connection says so", async () => {
    stored["acme"] = [connection({ credential: { type: "configured" } })];
    expect(await passwordOf("acme")).toBe("operator");
  });

  it("use no other credential in the place of one that can't be opened", async () => {
    stored["acme"] = [connection({ credential: new Error("the master key is missing") })];
    await expect(passwordOf("acme")).rejects.toMatchObject({ code: "secret_unavailable" });
  });

  it("take the credential again once it can be opened, though it did not change", async () => {
    stored["acme"] = [connection({ credential: new Error("the master key is missing") })];
    await expect(passwordOf("acme")).rejects.toMatchObject({ code: "secret_unavailable" });
    stored["acme"] = [connection({})];
    forges.forget("acme");
    expect(await passwordOf("acme")).toBe("of-acme");
  });

  it("give no token over plain http to a host that the operator does not list", async () => {
    stored["acme"] = [connection({ webUrl: "http://git.internal", apiUrl: "http://git.internal/api/v3" })];
    await expect(passwordOf("acme", "http://git.internal/a/b")).rejects.toMatchObject({
      code: "repository_access_denied",
    });
    stored["acme"] = [connection({ webUrl: "http://127.0.0.1", apiUrl: null, kind: "git", revision: "2" })];
    forges.forget("acme");
    expect(await passwordOf("acme", "http://127.0.0.1/a/b")).toBe("of-acme");
  });

  it("give no token of https for plain http or ssh", async () => {
    await expect(passwordOf("acme", "http://github.com/acme/shop")).rejects.toMatchObject({
      code: "repository_access_denied",
    });
    expect(await passwordOf("acme", "git@github.com:acme/shop")).toBeNull();
  });

  it("are not trusted with private networks: only the operator's hosts are", async () => {
    stored["acme"]?.push(connection({ id: "2", webUrl: "https://git.internal" }));
    const named = async (url: string) => (await forges.of("acme")).forgeOf(address(url)).namedByOperator;
    expect([await named("https://git.internal/a/b"), await named("https://127.0.0.1/a/b")]).toEqual([false, undefined]);
    stored["acme"] = [connection({ webUrl: "https://127.0.0.1", revision: "2" })];
    forges.forget("acme");
    expect(await named("https://127.0.0.1/a/b")).toBe(true);
  });

  it("report a credential that is refused in use, and reach no forbidden address", async () => {
    stored["acme"] = [
      connection({ webUrl: forge.url, apiUrl: forge.apiUrl, credential: { type: "token", token: "gone" } }),
      connection({ id: "2", webUrl: "https://git.example", apiUrl: "https://127.0.0.2/api/v3" }),
    ];
    const of = await forges.of("acme");
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const own = address(`${forge.url}/acme/shop`);
    await expect(of.forgeOf(own).readPullRequest(own, 1, signal)).rejects.toMatchObject({
      code: "repository_access_denied",
    });
    expect(refused).toEqual(["1"]);
    const far = address("https://git.example/acme/shop");
    await expect(of.forgeOf(far).readPullRequest(far, 1, signal)).rejects.toMatchObject({
      code: "repository_unreachable",
    });
    expect(refused).toEqual(["1"]);
  });
});
