import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRepositoryUrl, type RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import type { PullRequestField } from "../../src/domain/repositories/pull-request-settings.ts";
import type { Feedback } from "../../src/forges/feedback/feedback.ts";
import type { ForgeSettings } from "../../src/forges/forge.ts";
import { createForge } from "../../src/forges/forges.ts";
import { guidOf } from "../forge/azure-places.ts";
import { asAzure } from "../forge/azure-url.ts";
import { uuidOf } from "../forge/bitbucket-shapes.ts";
import { idOf } from "../forge/feedback.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import type { RepositoryFacts } from "../forge/state.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

type Kind = Exclude<ForgeSettings["kind"], "git">;

let server: TestForge;
let count = 0;

beforeAll(async () => {
  server = await startForge();
});

afterAll(() => server?.close());

const apis = {
  azure: "",
  github: "/api/v3",
  gitlab: "/api/v4",
  gitea: "/api/v1",
  bitbucket: "/2.0",
  bitbucketDataCenter: "/rest/api/latest",
} as const;
const kinds = Object.keys(apis) as Kind[];

/** How each forge names a person. */
const named = (kind: Kind, login: string): string =>
  kind === "bitbucket" ? (login === "bo" ? `557058:${idOf(login)}` : uuidOf(login)) : login;

/** An open pull request in a repository of its own. */
async function setting(kind: Kind, { draft = false, facts = {} }: { draft?: boolean; facts?: RepositoryFacts } = {}) {
  const name = `fields-${(count += 1)}`;
  const { url } = await server.createRepository("acme", name, { "a.txt": "a\n" });
  await server.commit("acme", name, "work", { "b.txt": "b\n" });
  const people = { ada: "write", bo: "write", cy: "read" } as const;
  server.describe("acme", name, { people, labels: ["bug", "from offstage"], ...facts });
  const settings = { kind, webUrl: server.url, apiUrl: `${server.url}${apis[kind]}`, token: server.token };
  const forge = createForge(settings);
  const address = parseRepositoryUrl(kind === "azure" ? asAzure(url) : url) as RepositoryAddress;
  const signal = AbortSignal.timeout(hangTimeoutMs);
  const request = { head: "work", target: "main", title: "Work", body: "Words", draft };
  const opened = await forge.openPullRequest(address, request, signal);
  const add = (field: PullRequestField, names: readonly string[]) =>
    (forge.feedback as Feedback).add(address, opened.number, { field, names }, signal);
  const kept = async () => (await server.pullRequests("acme", name))[0] as unknown as Record<string, unknown>;
  return { forge, address, signal, opened, add, kept };
}

const refusal = (words: string | RegExp) => ({
  code: "pull_request_refused",
  message: expect.stringMatching(words) as string,
});

describe.each(kinds)("on %s", (kind) => {
  it("a pull request is opened as a draft, and as ready for review without", async () => {
    const { opened, kept } = await setting(kind, { draft: true });
    expect([opened.created, opened.draft, (await kept())["draft"]]).toEqual([true, true, true]);
    const { opened: ready, kept: readyKept } = await setting(kind);
    expect([ready.draft, (await readyKept())["draft"]]).toEqual([false, false]);
  });

  it("reviewers are added to those that there are, however often, and an unknown one keeps out no other", async () => {
    const { add, kept, forge, address, signal, opened } = await setting(kind);
    await add("reviewers", [named(kind, "ada")]);
    await forge.editPullRequest(address, opened.number, (body) => `${body} and more`, signal);
    const both = ["ada", "bo"].map((login) => named(kind, login));
    for (let time = 0; time < 2; time += 1) await add("reviewers", both);
    expect((await kept())["reviewers"]).toEqual(["ada", "bo"]);
    expect((await kept())["body"]).toContain("Words and more");
    const withStranger = add("reviewers", ["nobody", named(kind, "cy")]);
    await expect(withStranger).rejects.toMatchObject(refusal(/did not take reviewers: nobody \(.+\)/u));
    expect((await kept())["reviewers"]).toEqual(["ada", "bo", "cy"]);
  });

  it.skipIf(kind.startsWith("bitbucket"))("labels are added to those that there are", async () => {
    const { add, kept } = await setting(kind);
    await add("labels", ["bug"]);
    for (let time = 0; time < 2; time += 1) await add("labels", ["bug", "from offstage"]);
    expect((await kept())["labels"]).toEqual(["bug", "from offstage"]);
  });

  it.skipIf(kind.startsWith("bitbucket") || kind === "azure")("people are assigned beside others", async () => {
    const { add, kept } = await setting(kind);
    await add("assignees", ["ada"]);
    for (let time = 0; time < 2; time += 1) await add("assignees", ["ada", "bo"]);
    expect((await kept())["assignees"]).toEqual(["ada", "bo"]);
    await expect(add("assignees", ["nobody", "cy"])).rejects.toMatchObject(
      refusal(/did not take assignees: nobody \(.+\)/u),
    );
    expect((await kept())["assignees"]).toEqual(["ada", "bo", "cy"]);
  });

  it("what it does not have is said", async () => {
    const { add } = await setting(kind);
    const missing = { azure: ["assignees"], bitbucket: ["labels", "assignees"] } as Record<string, PullRequestField[]>;
    const without = missing[kind === "bitbucketDataCenter" ? "bitbucket" : kind] ?? [];
    for (const field of without) await expect(add(field, ["x"])).rejects.toMatchObject(refusal("have none"));
  });
});

it("a repository of GitHub's without drafts gets a pull request that is ready for review", async () => {
  const { opened } = await setting("github", { draft: true, facts: { hasDrafts: false } });
  expect([opened.created, opened.draft]).toEqual([true, false]);
});

it.each(["github", "gitea"] as const)("a team is asked at %s", async (kind) => {
  const { add, kept } = await setting(kind);
  await add("reviewers", ["acme/core"]);
  expect((await kept())["reviewers"]).toEqual(["team core"]);
});

it("a label that Gitea does not know is reported, and the others are set", async () => {
  const { add, kept } = await setting("gitea");
  await expect(add("labels", ["invented", "bug"])).rejects.toMatchObject(refusal(/invented \(.*no such label/u));
  expect((await kept())["labels"]).toEqual(["bug"]);
});

it("a reviewer at Azure DevOps is named by the id, too, and asked again keeps the vote", async () => {
  const { add, kept } = await setting("azure");
  await add("reviewers", [guidOf("person ada")]);
  expect((await kept())["reviewers"]).toEqual(["ada"]);
  const asked = server.asked().length;
  await add("reviewers", [guidOf("person ada")]);
  expect(
    server
      .asked()
      .slice(asked)
      .filter((each) => each.startsWith("PUT")),
  ).toEqual([]);
});

it("a token that may not is refused as such", async () => {
  const { forge, address, signal } = await setting("github");
  const denied = createForge({ kind: "github", webUrl: server.url, apiUrl: server.apiUrl, token: "wrong" });
  const added = denied.feedback?.add(address, 1, { field: "reviewers", names: ["ada"] }, signal);
  await expect(added).rejects.toMatchObject({ code: "repository_access_denied" });
  expect(forge.kind).toBe("github");
});
