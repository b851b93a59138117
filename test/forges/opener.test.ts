import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { ForgeSettings, OpenedAccount, OpenerRefusal, PullRequestOpener } from "../../src/forges/forge.ts";
import { createForge } from "../../src/forges/forges.ts";
import { asAzure } from "../forge/azure-url.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import type { Person } from "../forge/state.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

let server: TestForge;

beforeAll(async () => {
  server = await startForge();
});
afterAll(() => server?.close());

/** Path of the API, and whether a person's token needs a name beside it. */
const kinds: readonly [OpenedAccount["kind"], string, string?][] = [
  ["azure", ""],
  ["github", "/api/v3"],
  ["gitlab", "/api/v4"],
  ["gitea", "/api/v1"],
  ["bitbucket", "/2.0", "ada@acme.example"],
  ["bitbucketDataCenter", "/rest/api/latest", "ada"],
];
let count = 0;

describe.each(kinds)("a pull request of %s", (kind, path, username) => {
  const apiUrl = () => `${server.url}${path}`;
  const accountOf = ({ token }: Person): OpenedAccount => ({
    kind,
    webUrl: server.url,
    apiUrl: apiUrl(),
    token,
    username,
  });

  /** A separate repository, with a branch to open a pull request for, and a person who asked for it. */
  async function setting() {
    const name = `shop-${(count += 1)}`;
    const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
    await server.commit("acme", name, "work", { "b.txt": "b\n" });
    const settings = { kind, webUrl: server.url, apiUrl: apiUrl(), token: server.token } as ForgeSettings;
    const forge = createForge(settings);
    const person = server.addPerson(`ada-${count}`);
    const call = await forge.as?.(accountOf(person));
    if (call == null) throw new Error("the forge knows no account");
    const refusals: OpenerRefusal[] = [];
    const limits: string[] = [];
    const opener: PullRequestOpener = {
      call,
      refused: (refusal) => Promise.resolve(void refusals.push(refusal)),
      limited: (reason) => Promise.resolve(void limits.push(reason)),
    };
    const askedBy: (string | null)[] = [];
    const work = {
      sessionId: "0f0f0f0f-0000-4000-8000-000000000000",
      sha: "a".repeat(40),
      askedMsAgo: null,
      beforeAsking: (by: PullRequestOpener | null) =>
        Promise.resolve(void askedBy.push(by === null ? null : person.login)),
    };
    const address = parseRepositoryUrl(kind === "azure" ? asAzure(url) : url) as RepositoryAddress;
    const open = () =>
      forge.openPullRequest(
        address,
        { head: "work", target: "main", title: "Work", body: "Words", work, opener },
        AbortSignal.timeout(hangTimeoutMs),
      );
    const pulls = async () => (await server.pullRequests("acme", name)).map(({ author, state }) => ({ author, state }));
    return { forge, person, refusals, limits, askedBy, open, pulls };
  }

  it("is opened in a person's name, with the one request that opens it", async () => {
    const { person, refusals, askedBy, open, pulls } = await setting();
    expect(await open()).toMatchObject({ number: 1, state: "open", created: true });
    expect(await pulls()).toEqual([{ author: person.login, state: "open" }]);
    expect(person.asked.filter((what) => !what.startsWith("GET "))).toHaveLength(1);
    expect([refusals, askedBy]).toEqual([[], [person.login]]);
    // It is found, whatever its author.
    expect(await open()).toMatchObject({ number: 1, created: false });
    expect(await pulls()).toHaveLength(1);
  });

  it.each([
    [403, "Must have admin rights to Repository."],
    [404, "Not Found"],
    [422, "You must be a collaborator"],
  ])("is opened in the forge's own name if the person may not, as %i says", async (status, words) => {
    const { person, refusals, askedBy, open, pulls } = await setting();
    person.refusal = { status, words };
    expect(await open()).toMatchObject({ number: 1, created: true });
    expect(await pulls()).toEqual([{ author: "tester", state: "open" }]);
    expect(refusals).toEqual([{ isOfCredential: false, words: expect.stringContaining(words) as string }]);
    expect(askedBy).toEqual([person.login, null]);
  });

  it("is opened in the forge's own name if the token is good for nothing", async () => {
    const { person, refusals, open, pulls } = await setting();
    server.removePerson(person);
    expect(await open()).toMatchObject({ number: 1, created: true });
    expect(await pulls()).toEqual([{ author: "tester", state: "open" }]);
    expect(refusals).toMatchObject([{ isOfCredential: true }]);
    expect(refusals[0]?.words).not.toContain(person.token);
  });

  it("is opened in the forge's own name if it takes no request of the person now, who may be asked for the next one", async () => {
    const { person, refusals, limits, askedBy, open, pulls } = await setting();
    person.refusal = { status: 429, words: "Too many requests" };
    expect(await open()).toMatchObject({ number: 1, created: true });
    expect(await pulls()).toEqual([{ author: "tester", state: "open" }]);
    expect([refusals, limits.length, askedBy]).toEqual([[], 1, [person.login, null]]);
  });

  it.runIf(kind === "github")(
    "is opened in the forge's own name if the person's token can't see the branch",
    async () => {
      const { person, refusals, askedBy, open, pulls } = await setting();
      person.refusal = { status: 422, words: "not all refs are readable" };
      expect(await open()).toMatchObject({ number: 1, created: true });
      expect(await pulls()).toEqual([{ author: "tester", state: "open" }]);
      expect(refusals).toEqual([{ isOfCredential: false, words: expect.stringContaining("not all refs") as string }]);
      expect([askedBy[0], askedBy.at(-1)]).toEqual([person.login, null]);
    },
  );

  it("is one and no more if the answer to the person's request is lost", async () => {
    const { person, refusals, open, pulls } = await setting();
    await server.failNext({ kind: "loseAnswer" });
    expect(await open()).toMatchObject({ number: 1, state: "open" });
    expect(await pulls()).toEqual([{ author: person.login, state: "open" }]);
    expect(refusals).toEqual([]);
  });

  it("is not asked for with an account of another kind, or that was checked at another address", async () => {
    const { forge, person } = await setting();
    const account = accountOf(person);
    expect(await forge.as?.({ ...account, apiUrl: "https://elsewhere.example/api" })).toBeNull();
    expect(await forge.as?.({ ...account, kind: kind === "gitea" ? "gitlab" : "gitea" })).toBeNull();
  });
});
