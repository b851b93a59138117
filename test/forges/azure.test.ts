import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { execFileSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { Feedback } from "../../src/forges/feedback/feedback.ts";
import { createAzure } from "../../src/forges/azure/azure.ts";
import { descriptionLimit } from "../../src/forges/azure/description.ts";
import { asAzure } from "../forge/azure-url.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

const signal = (): AbortSignal => AbortSignal.timeout(hangTimeoutMs);
const request = { head: "work", target: "main", title: "Work", body: "Words" };

describe("a pull request on Azure DevOps", () => {
  let forge: TestForge;
  beforeAll(async () => {
    forge = await startForge();
  });
  afterEach(() => forge.limitPages(50));
  afterAll(() => forge?.close());

  async function setting(name: string) {
    const { url } = await forge.createRepository("acme", name, { "a.txt": "a\n" });
    await forge.commit("acme", name, "work", { "b.txt": "b\n" });
    const git = (...parameters: string[]): string =>
      execFileSync("git", ["-C", forge.pathOf("acme", name), ...parameters], { encoding: "utf8" }).trim();
    const address = parseRepositoryUrl(asAzure(url)) as RepositoryAddress;
    const azure = createAzure({ kind: "azure", webUrl: forge.url, apiUrl: forge.url, token: forge.token });
    const open = (sha: string, body: string) =>
      azure.openPullRequest(
        address,
        {
          ...request,
          body,
          work: {
            sessionId: "0198c1f0-0000-7000-8000-000000000001",
            sha,
            askedMsAgo: null,
            beforeAsking: () => Promise.resolve(),
          },
        },
        signal(),
      );
    return { git, address, azure, open };
  }

  it("has a description that is cut, and is known by the mark at its end though lists leave that out", async () => {
    const { git, open } = await setting("long");
    const sha = git("rev-parse", "work");
    expect(await open(sha, "word ".repeat(2_000))).toMatchObject({ created: true, mark: { sha } });
    const [kept] = await forge.pullRequests("acme", "long");
    expect(kept?.body).toHaveLength(descriptionLimit);
    expect(kept?.body).toContain("cut here");
    // Its commits are replaced, and it is closed: only the mark says what it was for.
    git("update-ref", "-d", "refs/heads/work");
    await forge.commit("acme", "long", "work", { "rebased.txt": "c\n" });
    forge.endPullRequest("acme", "long", 1, "closed");
    expect(await open(sha, "Words")).toMatchObject({ number: 1, state: "closed", created: false });
  });

  it("whose description is changed by more than fits keeps its mark", async () => {
    const { git, open, azure, address } = await setting("edited");
    const sha = git("rev-parse", "work");
    const { number } = await open(sha, "Words");
    await azure.editPullRequest(address, number, (body) => `${"more ".repeat(2_000)}${body}`, signal());
    expect(await azure.readPullRequest(address, number, signal())).toMatchObject({ mark: { sha } });
    expect((await forge.pullRequests("acme", "edited"))[0]?.body.length).toBeLessThanOrEqual(descriptionLimit);
    // What Azure DevOps does with such an uncut text.
    const answer = await fetch(
      `${forge.url}/acme/edited/_apis/git/repositories/edited/pullrequests/1?api-version=7.0`,
      {
        method: "PATCH",
        headers: { Authorization: `Basic ${Buffer.from(`:${forge.token}`).toString("base64")}` },
        body: JSON.stringify({ description: "x".repeat(descriptionLimit + 1) }),
      },
    );
    expect(answer.status).toBe(400);
  });

  it("is known by a commit on a later page of its commits", async () => {
    const { git, open } = await setting("pages");
    const sha = git("rev-parse", "work");
    await open(sha, "Words");
    for (const name of ["c", "d", "e"]) await forge.commit("acme", "pages", "work", { [`${name}.txt`]: "x\n" });
    const second = git("rev-parse", "work~2");
    forge.endPullRequest("acme", "pages", 1, "merged");
    forge.limitPages(1);
    expect(await open(second, "Words")).toMatchObject({ number: 1, state: "merged" });
    const asked = forge.asked().filter((each) => each.includes("/commits"));
    expect(asked.length).toBeGreaterThan(2);
  });
});

describe("odd answers of Azure DevOps", () => {
  interface Answer {
    readonly status: number;
    readonly headers?: Record<string, string>;
    readonly body?: unknown;
  }
  let server: Server;
  let url: string;
  let answer: (request: IncomingMessage) => Answer = () => ({ status: 500 });
  let asked: string[] = [];
  beforeAll(async () => {
    server = createServer((incoming, response) => {
      incoming.resume();
      asked.push(`${incoming.method} ${incoming.url}`);
      const { status, headers = {}, body = {} } = answer(incoming);
      response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    asked = [];
  });
  afterAll(() => {
    server?.closeAllConnections();
    server?.close();
  });
  const azure = () => createAzure({ kind: "azure", webUrl: url, apiUrl: url, token: "x" });
  const address = (path = "acme/shop/_git/shop") => parseRepositoryUrl(`${url}/${path}`) as RepositoryAddress;
  const find = () => azure().findPullRequest(address(), "work", "main", signal());
  const html = { "content-type": "text/html; charset=utf-8" };

  it.each<[string, Answer]>([
    ["203 with a page", { status: 203, headers: html, body: "<html>Sign in" }],
    ["200 with a page to sign in", { status: 200, headers: html, body: "<html>Sign in" }],
    ["a way to sign in", { status: 302, headers: { location: "https://spsprodeus.vssps.visualstudio.com/_signin" } }],
    ["401 without words", { status: 401, body: "" }],
    ["403 in its words", { status: 403, body: { message: "TF401027: You need the Git 'GenericRead' permission." } }],
  ])("to a token that is not good: %s", async (_, said) => {
    answer = () => said;
    await expect(find()).rejects.toMatchObject({
      code: "repository_access_denied",
      remedy: expect.stringContaining("token") as string,
    });
    expect(asked).toHaveLength(1);
  });

  it("a page of something else than its sign-in is no answer, and no word on the token", async () => {
    answer = () => ({ status: 200, headers: html, body: "<html>Down for maintenance</html>" });
    await expect(find()).rejects.toMatchObject({ code: "forge_unavailable", passing: true });
  });

  it("a redirect elsewhere is a repository that was moved", async () => {
    answer = () => ({ status: 302, headers: { location: `${url}/elsewhere` } });
    await expect(find()).rejects.toMatchObject({ code: "repository_not_found" });
  });

  it("a refusal before the request is understood is reported in its words", async () => {
    const Message = "The requested resource does not support http method 'POST'.";
    answer = ({ method }) =>
      method === "GET"
        ? { status: 200, body: { count: 0, value: [] } }
        : { status: 405, body: { count: 1, value: { Message } } };
    await expect(azure().openPullRequest(address(), request, signal())).rejects.toMatchObject({
      code: "pull_request_refused",
      message: expect.stringContaining(Message) as string,
    });
  });

  it("a limit is waited for, and reported if it lasts", async () => {
    answer = () =>
      asked.length === 1
        ? {
            status: 429,
            headers: { "retry-after": "1", "x-ratelimit-resource": "AzureDevOps/TSTUs" },
            body: { message: "TF400733: The request has been canceled: Request was blocked due to exceeding usage." },
          }
        : { status: 200, headers: { "x-ratelimit-remaining": "0", "retry-after": "5" }, body: { count: 0, value: [] } };
    // One that was only delayed is an answer.
    expect(await find()).toBeNull();
    expect(asked).toHaveLength(2);
    answer = () => ({ status: 429, headers: { "retry-after": "300" }, body: { message: "TF400733: blocked" } });
    await expect(find()).rejects.toMatchObject({ code: "forge_unavailable", retryAfterMs: 300_000 });
  });

  it.each<[object, boolean | null]>([
    [{ mergeStatus: "succeeded" }, true],
    [{ mergeStatus: "rejectedByPolicy" }, true],
    [{ mergeStatus: "conflicts" }, false],
    [{ mergeStatus: "queued" }, null],
    [{ mergeStatus: "failure" }, null],
    [{}, null],
    [{ mergeStatus: "conflicts", status: "abandoned" }, null],
  ])("of a pull request with %j Offstage takes mergeable for %s", async (fields, mergeable) => {
    const refs = { sourceRefName: "refs/heads/a/b", targetRefName: "refs/heads/main" };
    answer = () => ({ status: 200, body: { pullRequestId: 3, status: "active", ...refs, ...fields } });
    expect(await azure().readPullRequest(address("acme/My%20Shop/_git/shop"), 3, signal())).toMatchObject({
      mergeable,
      head: "a/b",
      headSha: "",
      url: `${url}/acme/My%20Shop/_git/shop/pullrequest/3`,
    });
    expect(asked[0]).toMatch(
      /^GET \/acme\/My%20Shop\/_apis\/git\/repositories\/shop\/pullrequests\/3\?api-version=7\.0$/u,
    );
  });

  it("pull requests are read to the last page, and a fork's is not taken for ours", async () => {
    const pull = (pullRequestId: number, forkSource?: object) => ({
      pullRequestId,
      status: "abandoned",
      sourceRefName: "refs/heads/work",
      targetRefName: "refs/heads/main",
      ...(forkSource !== undefined && { forkSource }),
    });
    const theirs = Array.from({ length: 100 }, (_, index) => pull(900 - index, { repository: { id: "other" } }));
    answer = ({ url: path = "" }) => {
      const value = path.includes("skip=0") ? theirs : [pull(7)];
      return { status: 200, body: { count: value.length, value } };
    };
    expect(await find()).toMatchObject({ number: 7, state: "closed" });
    expect(asked).toHaveLength(2);
  });

  it("an address that is no repository's is said to be none, without a request", async () => {
    for (const path of ["acme/shop", "acme/a/b/_git/shop", "_git/shop"]) {
      await expect(azure().findPullRequest(address(path), "work", "main", signal())).rejects.toMatchObject({
        code: "repository_not_found",
        message: expect.stringContaining("/_git/") as string,
      });
    }
    expect(asked).toEqual([]);
  });

  it("rights of a person that are not in the answer are unknown", async () => {
    const id = "d6245f20-2af8-44f4-9451-8107cb2767db";
    const repository = { id: "r", name: "shop", project: { id: "p", name: "shop" } };
    const identity = { id, descriptor: "x;y", isActive: true };
    const mayWriteBy = (identities: unknown, lists: unknown, status = 200) => {
      answer = ({ url: path = "" }) => {
        if (path.includes("/identities")) return { status, body: identities };
        return { status: 200, body: path.includes("accesscontrol") ? lists : repository };
      };
      return azure().feedback?.mayWrite(address(), { id, login: "ada" }, signal());
    };
    const list = (value: readonly unknown[]) => ({ count: value.length, value });
    const rights = (effectiveAllow: number, effectiveDeny = 0) =>
      list([{ acesDictionary: { "x;y": { extendedInfo: { effectiveAllow, effectiveDeny } } } }]);
    expect(await mayWriteBy(list([identity]), rights(4))).toBe(true);
    expect(await mayWriteBy(list([identity]), rights(4, 4))).toBe(false);
    expect(await mayWriteBy(list([identity]), rights(2))).toBe(false);
    expect(await mayWriteBy(list([{ ...identity, isActive: false }]), rights(4))).toBe(false);
    expect(await mayWriteBy(list([null]), rights(4))).toBe(false);
    // The answer has no groups, so nothing is known.
    expect(await mayWriteBy(list([identity]), list([{ acesDictionary: { "x;y": { allow: 0, deny: 0 } } }]))).toBeNull();
    expect(await mayWriteBy(list([identity]), list([]))).toBeNull();
    expect(await mayWriteBy({ message: "no scope" }, rights(4), 401)).toBeNull();
    expect(await azure().feedback?.mayWrite(address(), { id: "7", login: "ada" }, signal())).toBe(false);
  });

  it("of a build the log of the step that failed last is read, and of one without logs none", async () => {
    const log = (id: number, result: string, type: string, minute: number) => ({
      type,
      result,
      finishTime: `2026-01-01T00:0${minute}:00Z`,
      log: { id },
    });
    const read = async (records: unknown) => {
      answer = ({ url: path = "" }) =>
        path.includes("/builds/12/timeline")
          ? { status: 200, body: { records } }
          : { status: 200, body: `log ${/logs\/(\d+)/u.exec(path)?.[1] ?? ""}\n` };
      const feedback = azure().feedback as Feedback;
      // As the end of a build is delivered.
      const [job] = (await feedback.failedJobs?.(address(), { kind: "build", id: "12", sha: "a" }, signal())) ?? [];
      return feedback.readLogEnd(address(), job?.id ?? "", 100, signal());
    };
    const steps = [log(3, "failed", "Task", 1), log(4, "failed", "Task", 2), log(5, "succeeded", "Task", 3)];
    expect(await read([...steps, log(9, "failed", "Job", 4)])).toBe("log 4\n");
    expect(await read([log(5, "succeeded", "Task", 3), log(9, "failed", "Job", 4)])).toBe("log 9\n");
    expect(await read([log(6, "canceled", "Task", 5), log(5, "succeeded", "Task", 3)])).toBe("log 6\n");
    expect([await read([{ type: "Task" }]), await read(null)]).toEqual([null, null]);
  });
});
