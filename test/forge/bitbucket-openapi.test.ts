import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDescription, type DescriptionCheck } from "./bitbucket-description.ts";
import { startForge, type TestForge } from "./server.ts";

const repository = "/repositories/{workspace}/{repo_slug}";
const pulls = `${repository}/pullrequests`;
const pull = `${pulls}/{pull_request_id}`;
let forge: TestForge;
let described: DescriptionCheck;
const problems: DescriptionCheck["problems"] = (...sent) => described.problems(...sent);

beforeAll(async () => {
  forge = await startForge();
  await forge.createRepository("acme", "shop", { "a.txt": "a\n" });
  await forge.commit("acme", "shop", "work", { "b.txt": "b\n" });
  forge.describe("acme", "shop", { threads: ["77"], issues: [40], people: { ada: "write" }, logs: { "5": "a log\n" } });
  // These are for every list (https://developer.atlassian.com/cloud/bitbucket/rest/intro/#pagination, #filtering).
  const alsoKnown = ["page", "pagelen", "q", "sort"];
  described = await readDescription("bitbucket-openapi.json", forge, { base: "/2.0", alsoKnown });
});

afterAll(() => forge?.close());

const at = "/repositories/acme/shop";
const request = {
  title: "Work",
  description: "Words",
  source: { branch: { name: "work" } },
  destination: { branch: { name: "main" } },
  draft: true,
};
/** What `src/forges/bitbucket/bitbucket.ts` reads of a pull request. */
const readOfPull = [
  "id",
  "title",
  "description",
  "state",
  "source.branch.name",
  "source.commit.hash",
  "source.repository.full_name",
  "destination.repository.full_name",
  "destination.branch.name",
  "created_on",
  "draft",
  "links.html.href",
];

describe("the test forge answers as Bitbucket's description says, with the fields that are read, what is sent as it says", () => {
  it("when a pull request is opened, refused, read, changed, listed and declined", async () => {
    const opened = await problems(["POST", pulls], `${at}/pullrequests`, { body: request, read: readOfPull });
    expect(opened).toMatchObject({ status: 201, wrong: [] });
    const missing = { ...request, source: { branch: { name: "nowhere" } } };
    // Of an error the description lacks `fields`, which the introduction to the API has.
    expect(await problems(["POST", pulls], `${at}/pullrequests`, { body: missing })).toMatchObject({
      status: 400,
      wrong: [expect.stringContaining('/error must NOT have additional properties {"additionalProperty":"fields"}')],
      body: { error: { message: "source: branch not found: nowhere" } },
    });
    const same = { ...request, source: { branch: { name: "main" } } };
    expect(await problems(["POST", pulls], `${at}/pullrequests`, { body: same })).toMatchObject({
      status: 400,
      wrong: [],
    });
    expect(await problems(["GET", pull], `${at}/pullrequests/1`, { read: [...readOfPull, "reviewers"] })).toMatchObject(
      {
        status: 200,
        wrong: [],
      },
    );
    const change = { title: "Work", description: "Other words", reviewers: [] };
    expect(await problems(["PUT", pull], `${at}/pullrequests/1`, { body: change })).toMatchObject({
      status: 200,
      wrong: [],
    });
    const commits = await problems(["GET", `${pull}/commits`], `${at}/pullrequests/1/commits?pagelen=1`);
    expect(commits).toMatchObject({ status: 200, body: { values: [{ hash: expect.any(String) as string }] } });
    expect(await problems(["GET", `${pull}/conflicts`], `${at}/pullrequests/1/conflicts`)).toMatchObject({
      status: 302,
      wrong: [],
    });
    expect(await problems(["POST", `${pull}/decline`], `${at}/pullrequests/1/decline`)).toMatchObject({
      status: 200,
      wrong: [],
      body: { state: "DECLINED" },
    });
    const query = "q=x&sort=-created_on&pagelen=50&state=OPEN&state=DECLINED";
    expect(await problems(["GET", pulls], `${at}/pullrequests?${query}`, { read: readOfPull })).toMatchObject({
      status: 200,
      wrong: [],
    });
    expect(await problems(["GET", pull], `${at}/pullrequests/9`)).toMatchObject({ status: 404, wrong: [] });
  });

  it("when a repository is read and forked", async () => {
    const read = ["full_name", "fork_policy"];
    expect(await problems(["GET", repository], at, { read })).toMatchObject({ status: 200, wrong: [] });
    const body = { workspace: { slug: "tester" } };
    // The workspace is in the text of the description alone.
    expect(await problems(["POST", `${repository}/forks`], `${at}/forks`, { body, read: ["full_name"] })).toMatchObject(
      {
        status: 201,
        wrong: [expect.stringContaining('{"additionalProperty":"workspace"}')],
      },
    );
    const fork = await problems(["GET", repository], "/repositories/tester/shop", { read: ["parent.full_name"] });
    expect(fork).toMatchObject({ status: 200, wrong: [] });
    const branches = await problems(["GET", `${repository}/refs/branches`], `${at}/refs/branches?pagelen=1`);
    expect(branches).toMatchObject({ status: 200, wrong: [] });
  });

  it("when something is said, in a thread too, and a status is set", async () => {
    const read = ["id", "content.raw", "created_on", "deleted", "links.html.href"];
    const comments: [string, string] = ["POST", `${pull}/comments`];
    const words = { content: { raw: "Words" } };
    expect(await problems(comments, `${at}/pullrequests/1/comments`, { body: words, read })).toMatchObject({
      status: 201,
      wrong: [],
    });
    const reply = { ...words, parent: { id: 77 } };
    expect(await problems(comments, `${at}/pullrequests/1/comments`, { body: reply, read })).toMatchObject({
      status: 201,
      wrong: [],
      body: { parent: { id: 77 } },
    });
    const resolving: [string, string] = ["POST", `${pull}/comments/{comment_id}/resolve`];
    for (const [thread, status] of [
      [77, 200],
      [77, 409],
      [78, 404],
    ]) {
      const resolved = await problems(resolving, `${at}/pullrequests/1/comments/${thread}/resolve`);
      expect(resolved).toMatchObject({ status, wrong: [] });
    }
    const listed = `${at}/pullrequests/1/comments?sort=-created_on&pagelen=100`;
    expect(await problems(["GET", `${pull}/comments`], listed, { read })).toMatchObject({ status: 200, wrong: [] });
    const body = { key: "offstage", name: "offstage", state: "INPROGRESS", description: "x", url: "https://x.example" };
    const statuses: [string, string] = ["POST", `${repository}/commit/{commit}/statuses/build`];
    const set = await problems(statuses, `${at}/commit/${"a".repeat(40)}/statuses/build`, { body });
    expect(set).toMatchObject({ status: 201, wrong: [] });
  });

  it("when it is asked who may do what, and for the log of a pipeline", async () => {
    const people = "/workspaces/{workspace}/permissions/repositories/{repo_slug}";
    const read = ["permission", "user.uuid", "repository.full_name"];
    const all = await problems(["GET", people], "/workspaces/acme/permissions/repositories/shop?pagelen=100", { read });
    expect(all).toMatchObject({ status: 200, wrong: [] });
    const own = "/user/workspaces/{workspace}/permissions/repositories";
    const query = new URLSearchParams({ q: 'repository.full_name = "acme/shop"' }).toString();
    const mine = await problems(["GET", own], `/user/workspaces/acme/permissions/repositories?${query}`, { read });
    expect(mine).toMatchObject({ status: 200, wrong: [] });
    expect(await problems(["GET", "/user"], "/user", { read: ["uuid", "username"] })).toMatchObject({ wrong: [] });
    const pipeline = `${repository}/pipelines/{pipeline_uuid}/steps`;
    const steps = await problems(["GET", pipeline], `${at}/pipelines/5/steps?pagelen=100`, {
      read: ["uuid", "state.result.name"],
    });
    expect(steps).toMatchObject({ status: 200, wrong: [] });
    const [, step] = (steps.body as { values: { uuid: string }[] }).values;
    const log = `${at}/pipelines/5/steps/${encodeURIComponent(step?.uuid ?? "")}/log`;
    expect(await problems(["GET", `${pipeline}/{step_uuid}/log`], log)).toMatchObject({ status: 307, wrong: [] });
  });
});

it("the check sees a field that is not described, one that is missing, and one of another type", async () => {
  const { body } = await problems(["GET", pull], `${at}/pullrequests/1`, { read: ["invented"] });
  expect((await problems(["GET", pull], `${at}/pullrequests/1`, { read: ["invented"] })).wrong).toEqual([
    "invented is not there",
  ]);
  const schema = described.operationOf(`GET ${pull}`).responses["200"];
  expect(described.wrong(schema, { ...(body as object), invented: 1 }).join()).toContain("invented");
  expect(described.wrong(schema, { ...(body as object), id: "1" }).join()).toContain("/id must be integer,null");
});
