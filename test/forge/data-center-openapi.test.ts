import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDescription, type DescriptionCheck } from "./bitbucket-description.ts";
import { startForge, type TestForge } from "./server.ts";

const repository = "/api/latest/projects/{projectKey}/repos/{repositorySlug}";
const pulls = `${repository}/pull-requests`;
const pull = `${pulls}/{pullRequestId}`;
let forge: TestForge;
let described: DescriptionCheck;
const problems: DescriptionCheck["problems"] = (...sent) => described.problems(...sent);

beforeAll(async () => {
  forge = await startForge();
  await forge.createRepository("acme", "shop", { "a.txt": "a\n" });
  await forge.commit("acme", "shop", "work", { "b.txt": "b\n" });
  forge.describe("acme", "shop", { threads: ["77"], people: { ada: "write" } });
  // Only the first of the filters for permissions is described, and its fields in words alone.
  const alsoKnown = ["permission.1", "permission.1.projectKey", "permission.1.repositorySlug"];
  described = await readDescription("bitbucket-data-center-openapi.json", forge, { base: "/rest", alsoKnown });
});

afterAll(() => forge?.close());

const at = "/api/latest/projects/acme/repos/shop";
const repositoryOf = { slug: "shop", project: { key: "acme" } };
const request = {
  title: "Work",
  description: "Words",
  fromRef: { id: "refs/heads/work", repository: repositoryOf },
  toRef: { id: "refs/heads/main", repository: repositoryOf },
  draft: true,
};
/** What `src/forges/bitbucket-data-center/bitbucket-data-center.ts` reads of a pull request. */
const readOfPull = [
  "id",
  "version",
  "title",
  "description",
  "state",
  "draft",
  "fromRef.id",
  "fromRef.latestCommit",
  "fromRef.repository.slug",
  "toRef.id",
  "toRef.repository.project.key",
  "reviewers",
];

describe("the test forge answers as Data Center's description says, with the fields that are read, what is sent as it says", () => {
  it("when a pull request is opened, refused, read, changed, listed and declined", async () => {
    const opened = await problems(["POST", pulls], `${at}/pull-requests`, { body: request, read: readOfPull });
    expect(opened).toMatchObject({ status: 201, wrong: [] });
    const missing = { ...request, fromRef: { ...request.fromRef, id: "refs/heads/nowhere" } };
    expect(await problems(["POST", pulls], `${at}/pull-requests`, { body: missing })).toMatchObject({
      status: 404,
      wrong: [],
    });
    // The description lacks the pull request that there is, which servers name.
    expect(await problems(["POST", pulls], `${at}/pull-requests`, { body: request })).toMatchObject({
      status: 409,
      wrong: [expect.stringContaining('{"additionalProperty":"existingPullRequest"}')],
    });
    expect(await problems(["GET", pull], `${at}/pull-requests/1`, { read: readOfPull })).toMatchObject({
      status: 200,
      wrong: [],
    });
    const change = {
      version: 0,
      title: "Work",
      description: "Other",
      draft: false,
      reviewers: [{ user: { name: "ada" } }],
    };
    expect(await problems(["PUT", pull], `${at}/pull-requests/1`, { body: change, read: readOfPull })).toMatchObject({
      status: 200,
      wrong: [],
      body: { version: 1, reviewers: [{ user: { name: "ada" } }] },
    });
    expect(await problems(["PUT", pull], `${at}/pull-requests/1`, { body: change })).toMatchObject({
      status: 409,
      wrong: [],
    });
    const commits = await problems(["GET", `${pull}/commits`], `${at}/pull-requests/1/commits?start=0&limit=100`);
    expect(commits).toMatchObject({ status: 200, wrong: [], body: { values: [{ id: expect.any(String) as string }] } });
    const merge = await problems(["GET", `${pull}/merge`], `${at}/pull-requests/1/merge`, { read: ["outcome"] });
    expect(merge).toMatchObject({ status: 200, wrong: [], body: { outcome: "CLEAN" } });
    const query = "direction=OUTGOING&at=refs/heads/work&state=ALL&order=NEWEST&start=0&limit=100";
    expect(await problems(["GET", pulls], `${at}/pull-requests?${query}`, { read: readOfPull })).toMatchObject({
      status: 200,
      wrong: [],
      body: { values: [{ id: 1 }], isLastPage: true },
    });
    const declined = await problems(["POST", `${pull}/decline`], `${at}/pull-requests/1/decline?version=1`);
    expect(declined).toMatchObject({ status: 200, wrong: [], body: { state: "DECLINED" } });
    expect((await problems(["GET", `${pull}/merge`], `${at}/pull-requests/1/merge`)).status).toBe(409);
  });

  it("when a repository is read and forked, and those are listed to which the token may write", async () => {
    const read = ["slug", "name", "project.key", "archived", "forkable", "state"];
    expect(await problems(["GET", repository], at, { read })).toMatchObject({ status: 200, wrong: [] });
    const wanted = "/api/latest/repos?permission=REPO_WRITE&projectkey=acme&name=Repository+shop&limit=100";
    expect(await problems(["GET", "/api/latest/repos"], wanted, { read })).toMatchObject({
      status: 200,
      wrong: [],
      body: { values: [{ slug: "shop" }], isLastPage: true },
    });
    const forked = await problems(["POST", repository], at, { body: {}, read: ["origin.slug", "origin.project.key"] });
    expect(forked).toMatchObject({ status: 201, wrong: [], body: { project: { key: "~tester" } } });
    const branches = await problems(["GET", `${repository}/branches`], `${at}/branches?limit=1`);
    expect(branches).toMatchObject({ status: 200, wrong: [] });
  });

  it("when something is said, in a thread too, a reaction is added, a build is reported, and people are listed", async () => {
    const comments: [string, string] = ["POST", `${pull}/comments`];
    const read = ["id", "text", "createdDate"];
    const said = await problems(comments, `${at}/pull-requests/1/comments`, { body: { text: "Words" }, read });
    expect(said).toMatchObject({ status: 201, wrong: [] });
    const reply = { text: "Words", parent: { id: 77 } };
    expect(await problems(comments, `${at}/pull-requests/1/comments`, { body: reply, read })).toMatchObject({
      status: 201,
      wrong: [],
    });
    const thread = await problems(["GET", `${pull}/comments/{commentId}`], `${at}/pull-requests/1/comments/77`, {
      read: [...read, "comments.0.text"],
    });
    expect(thread).toMatchObject({ status: 200, wrong: [] });
    const resolving: [string, string] = ["PUT", `${pull}/comments/{commentId}`];
    const change = { version: 0, threadResolved: true };
    const resolvedRead = ["version", "threadResolved", "severity", "state"];
    for (const status of [200, 409]) {
      const resolved = await problems(resolving, `${at}/pull-requests/1/comments/77`, {
        body: change,
        read: status === 200 ? resolvedRead : [],
      });
      expect(resolved).toMatchObject({ status, wrong: [] });
    }
    // The description says of an activity that clients should be ready for more fields.
    const all = await problems(["GET", `${pull}/activities`], `${at}/pull-requests/1/activities?start=0&limit=100`, {
      read: ["action", "createdDate", "comment.text"],
    });
    expect(all.wrong.filter((each) => !/"(?:comment|commentAction)"/u.test(each))).toEqual([]);
    const likes = `${pull.replace("/api/", "/comment-likes/")}/comments/{commentId}/reactions/{emoticon}`;
    const likesAt = `${at.replace("/api/", "/comment-likes/")}/pull-requests/1/comments/77/reactions/eyes`;
    expect(await problems(["PUT", likes], likesAt)).toMatchObject({ status: 200, wrong: [] });
    const body = { key: "offstage", name: "offstage", state: "INPROGRESS", description: "x", url: "https://x.example" };
    const builds: [string, string] = ["POST", `${repository}/commits/{commitId}/builds`];
    const built = await problems(builds, `${at}/commits/${"a".repeat(40)}/builds`, { body });
    expect(built).toMatchObject({ status: 204, wrong: [] });
    const filter = "permission.1=REPO_WRITE&permission.1.projectKey=acme&permission.1.repositorySlug=shop&filter=ada";
    const people = await problems(["GET", "/api/latest/users"], `/api/latest/users?${filter}&start=0&limit=100`, {
      read: ["id", "name", "active"],
    });
    // The answer is described as one user, and in words as a page of them.
    const [ada] = (people.body as { values: readonly unknown[] }).values;
    expect([
      people.status,
      described.wrong(described.operationOf("GET /api/latest/users").responses["200"], ada),
    ]).toEqual([200, []]);
    expect(people.wrong.filter((each) => each.includes("is not there"))).toEqual([]);
  });
});

it("the check sees a field that is not described, one that is missing, and one of another type", async () => {
  const { body, wrong: missing } = await problems(["GET", pull], `${at}/pull-requests/1`, { read: ["invented"] });
  expect(missing).toEqual(["invented is not there"]);
  const schema = described.operationOf(`GET ${pull}`).responses["200"];
  expect(described.wrong(schema, { ...(body as object), invented: 1 }).join()).toContain("invented");
  expect(described.wrong(schema, { ...(body as object), id: "1" }).join()).toContain("/id must be integer,null");
});
