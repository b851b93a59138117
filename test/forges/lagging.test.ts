import { execFileSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Forge, PullRequestWork } from "../../src/forges/forge.ts";
import { createAzure } from "../../src/forges/azure/azure.ts";
import { createBitbucketDataCenter } from "../../src/forges/bitbucket-data-center/bitbucket-data-center.ts";
import { createBitbucket } from "../../src/forges/bitbucket/bitbucket.ts";
import { createGitea } from "../../src/forges/gitea/gitea.ts";
import { createGitHub } from "../../src/forges/github/github.ts";
import { createGitLab } from "../../src/forges/gitlab/gitlab.ts";
import { asAzure } from "../forge/azure-url.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;
let count = 0;
const sessionId = "0198c1f0-0000-7000-8000-000000000001";

beforeAll(async () => {
  server = await startForge();
});

afterEach(() => {
  server.lag(0);
  server.limitPages(50);
});

afterAll(() => server?.close());

const azure = (): Forge => createAzure({ kind: "azure", webUrl: server.url, apiUrl: server.url, token: server.token });
const github = (): Forge =>
  createGitHub({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: server.token });
const gitea = (): Forge =>
  createGitea({ kind: "gitea", webUrl: server.url, apiUrl: `${server.url}/api/v1`, token: server.token });
const gitlab = (): Forge =>
  createGitLab({ kind: "gitlab", webUrl: server.url, apiUrl: `${server.url}/api/v4`, token: server.token });
const bitbucket = (): Forge =>
  createBitbucket({ kind: "bitbucket", webUrl: server.url, apiUrl: `${server.url}/2.0`, token: server.token });
const dataCenter = (): Forge =>
  createBitbucketDataCenter({
    kind: "bitbucketDataCenter",
    webUrl: server.url,
    apiUrl: `${server.url}/rest/api/latest`,
    token: server.token,
  });
const adapters: readonly [string, () => Forge][] = [
  ["Azure DevOps", azure],
  ["GitHub", github],
  ["GitLab", gitlab],
  ["Gitea", gitea],
  ["Bitbucket", bitbucket],
  ["Data Center", dataCenter],
];

const words = { head: "work", target: "main", title: "Work", body: "Words" };

/** A repository of its own with a pushed branch. */
async function setting(create: () => Forge) {
  const name = `lagging-${(count += 1)}`;
  const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
  const push = async (file: string): Promise<string> => {
    await server.commit("acme", name, "work", { [file]: "b\n" });
    return git("rev-parse", "work");
  };
  const git = (...parameters: string[]): string =>
    execFileSync("git", ["-C", server.pathOf("acme", name), ...parameters], { encoding: "utf8" }).trim();
  const forge = create();
  const address = parseRepositoryUrl(forge.kind === "azure" ? asAzure(url) : url) as RepositoryAddress;
  const open = (work?: Partial<PullRequestWork> & Pick<PullRequestWork, "sha">, from: Forge = forge) =>
    from.openPullRequest(
      address,
      {
        ...words,
        ...(work && { work: { sessionId, askedMsAgo: null, beforeAsking: () => Promise.resolve(), ...work } }),
      },
      AbortSignal.timeout(hangTimeoutMs),
    );
  return { name, git, push, open, pulls: () => server.pullRequests("acme", name) };
}

describe.each(adapters)("%s, behind", (_, create) => {
  it("does not know a branch that was just pushed, and opens its pull request once it does", async () => {
    const { push, open, pulls } = await setting(create);
    server.lag(1_500);
    const sha = await push("b.txt");
    // Of a branch without a known push, the answer is final.
    await expect(open()).rejects.toMatchObject({ code: "pull_request_refused", retryable: false });
    expect(await open({ sha })).toMatchObject({ number: 1, state: "open", created: true });
    expect(await pulls()).toHaveLength(1);
  });

  it("says that there is one before it lists it, which is then found", async () => {
    const { push, open, pulls } = await setting(create);
    const sha = await push("b.txt");
    server.lag(1_500);
    await open({ sha });
    expect(await open({ sha })).toMatchObject({ number: 1, created: false });
    expect(await pulls()).toHaveLength(1);
  });

  it("opens one whose answer is lost, which is then found as the session's own", async () => {
    const { push, open, pulls } = await setting(create);
    const sha = await push("b.txt");
    server.lag(1_500);
    await server.failNext({ kind: "loseAnswer" });
    let asked = 0;
    const beforeAsking = () => Promise.resolve(void (asked += 1));
    expect(await open({ sha, beforeAsking })).toMatchObject({ number: 1, state: "open", created: true });
    expect(asked).toBe(1);
    expect(await pulls()).toHaveLength(1);
  });

  it("does not list the one of an attempt that died, which was merged: it is waited for", async () => {
    const { name, push, open, pulls } = await setting(create);
    const sha = await push("b.txt");
    server.lag(1_500);
    await open({ sha });
    server.endPullRequest("acme", name, 1, "merged");
    expect(await open({ sha, askedMsAgo: 100 })).toMatchObject({ number: 1, created: true });
    expect(await pulls()).toHaveLength(1);
    // Without the record of the request, a second one is what a list like this leads to.
    const other = await setting(create);
    const otherSha = await other.push("b.txt").finally(() => server.lag(0));
    // Longer than any machine takes until it asks again.
    server.lag(600_000);
    await other.open({ sha: otherSha });
    server.endPullRequest("acme", `lagging-${count}`, 1, "merged");
    expect(await other.open({ sha: otherSha })).toMatchObject({ number: 2 });
  });
});

describe.each(adapters)("%s, with a pull request that is not open any more", (_, create) => {
  it.each(["closed", "merged"] as const)("finds the %s one of the same head, and opens no other", async (state) => {
    const { name, push, open, pulls } = await setting(create);
    const sha = await push("b.txt");
    await open();
    server.endPullRequest("acme", name, 1, state);
    expect(await open({ sha })).toMatchObject({ number: 1, state, created: false });
    expect(await pulls()).toHaveLength(1);
  });

  it("finds it after its branch was deleted", async () => {
    const { name, git, push, open, pulls } = await setting(create);
    const sha = await push("b.txt");
    await open({ sha });
    server.endPullRequest("acme", name, 1, "merged");
    git("update-ref", "-d", "refs/heads/work");
    expect(await open({ sha })).toMatchObject({ number: 1, state: "merged", head: "work" });
    expect(await pulls()).toHaveLength(1);
  });

  it("finds the one that got a commit by others before it was merged", async () => {
    const { name, push, open, pulls } = await setting(create);
    const first = await push("b.txt");
    await open({ sha: first });
    const second = await push("c.txt");
    await push("by-a-reviewer.txt");
    server.endPullRequest("acme", name, 1, "merged");
    expect(await open({ sha: second })).toMatchObject({ number: 1, state: "merged" });
    expect(await pulls()).toHaveLength(1);
  });

  it("finds the one whose commits were replaced, by its mark", async () => {
    const { name, git, push, open, pulls } = await setting(create);
    const sha = await push("b.txt");
    await open({ sha });
    git("update-ref", "-d", "refs/heads/work");
    await push("rebased.txt");
    server.endPullRequest("acme", name, 1, "closed");
    expect(await open({ sha })).toMatchObject({ number: 1, state: "closed" });
    expect(await pulls()).toHaveLength(1);
    // Another session's mark is none of ours.
    const sessionOther = "0198c1f0-0000-7000-8000-000000000002";
    expect(await open({ sha, sessionId: sessionOther })).toMatchObject({ number: 2, created: true });
  });

  it("opens another for commits that came after it", async () => {
    const { name, push, open, pulls } = await setting(create);
    await open({ sha: await push("b.txt") });
    server.endPullRequest("acme", name, 1, "merged");
    const sha = await push("c.txt");
    expect(await open({ sha })).toMatchObject({ number: 2, state: "open", created: true });
    server.endPullRequest("acme", name, 2, "closed");
    expect(await open({ sha })).toMatchObject({ number: 2, state: "closed" });
    expect(await pulls()).toHaveLength(2);
  });
});

describe("Gitea with an administrator's small pages", () => {
  it("is read to the last page, whatever their size", async () => {
    const { name, push, open, git } = await setting(gitea);
    const sha = await push("b.txt");
    await open({ sha });
    server.endPullRequest("acme", name, 1, "closed");
    const forge = gitea();
    const address = parseRepositoryUrl(`${server.url}/acme/${name}`) as RepositoryAddress;
    for (let other = 0; other < 6; other += 1) {
      git("branch", `other-${other}`, "work");
      const signal = AbortSignal.timeout(hangTimeoutMs);
      await forge.openPullRequest(address, { ...words, head: `other-${other}` }, signal);
    }
    server.limitPages(2);
    expect(await open({ sha })).toMatchObject({ number: 1, state: "closed" });
    const second = await push("c.txt");
    expect(await open({ sha: second })).toMatchObject({ number: 8, created: true });
    // The forge names the older one of the two by its branches.
    expect(await open({ sha: second })).toMatchObject({ number: 8, created: false });
  });
});

describe("GitHub's limits", () => {
  const limited = async () => {
    const { push, open } = await setting(github);
    return { open, sha: await push("b.txt") };
  };

  it("of an hour, used up, tell when it begins anew", async () => {
    const { open, sha } = await limited();
    await server.failNext({ kind: "primaryLimit", resetInSeconds: 1_800 });
    const failure = await open({ sha }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "forge_unavailable", retryable: true });
    const { retryAfterMs } = failure as { retryAfterMs: number };
    expect(retryAfterMs).toBeGreaterThan(1_790_000);
    expect(retryAfterMs).toBeLessThan(1_802_000);
  });

  it("of what is done at once tell how long to wait", async () => {
    const { open, sha } = await limited();
    await server.failNext({ kind: "secondaryLimit", retryAfterSeconds: 90 });
    await expect(open({ sha })).rejects.toMatchObject({
      code: "forge_unavailable",
      retryAfterMs: 90_000,
      message: expect.stringContaining("secondary rate limit") as string,
    });
  });

  it("that name no time are waited out for a minute after a few tries", async () => {
    const { open, sha } = await limited();
    for (let time = 0; time < 4; time += 1) await server.failNext({ kind: "secondaryLimit", retryAfterSeconds: null });
    await expect(open({ sha })).rejects.toMatchObject({ code: "forge_unavailable", retryAfterMs: 60_000 });
    expect(server.pendingFailures()).toBe(0);
  });
});
