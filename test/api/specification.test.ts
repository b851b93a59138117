import { afterAll, beforeAll, expect, test } from "vitest";
import { createKey } from "../../src/store/people/keys.ts";
import { createTestApp, type Call, type TestApp } from "./app.ts";

let testApp: TestApp;
let app: TestApp["app"];
let admin: string;
let reader: string;

beforeAll(async () => {
  testApp = await createTestApp();
  ({ app, adminKey: admin } = testApp);
  const { testDatabase, organizationId } = testApp;
  reader = (await createKey(testDatabase.database, organizationId, { name: "reader", scopes: ["read"] })).key;
});

afterAll(() => testApp?.close());

const post = (url: string, body: unknown, call: Call = {}) => testApp.request("POST", url, { ...call, body });

test("session creation answers with exactly the specification's fields", async () => {
  const { status, body } = await post("/session/create", { prompt: "## Fix the *login*", description: "More." });
  expect(status).toBe(200);
  expect(Object.keys(body).toSorted()).toEqual([
    "createdAt",
    "description",
    "htmlUrl",
    "id",
    "organizationId",
    "status",
    "title",
    "updatedAt",
  ]);
  expect(body).toMatchObject({ title: "Fix the login", description: "More.", status: "queued" });
  expect(body.htmlUrl).toBe(`http://offstage.test/sessions/${body.id}`);
});

test("a field that is not known is named in a notice of the session", async () => {
  const { body } = await post("/session/create", { prompt: "x", targetBranhc: "main" });
  const response = await app.inject({
    url: `/session/${body.id}/events`,
    headers: { authorization: `Bearer ${admin}` },
  });
  expect(response.json().events).toContainEqual(
    expect.objectContaining({
      type: "notice",
      data: expect.objectContaining({ text: expect.stringContaining("targetBranhc") }),
    }),
  );
});

test("a field that is not known changes nothing of the session, whatever it is called inside", async () => {
  const inner = {
    title: "Theirs",
    priority: 1,
    payload: { a: 1 },
    automationId: crypto.randomUUID(),
    jobId: crypto.randomUUID(),
    sandboxed: false,
    createdBy: crypto.randomUUID(),
    message: "theirs",
    status: "completed",
  };
  const { status, body } = await post("/session/create", { prompt: "Ours", ...inner });
  expect(status).toBe(200);
  expect((await testApp.get(`/session/${body.id}`)).body).toMatchObject({
    title: "Ours",
    status: "queued",
    priority: 5,
    automationId: null,
    jobId: null,
    sandboxed: true,
  });
  for (const wrong of [{ title: { a: 1 } }, { priority: "high" }, { payload: "\ud800" }]) {
    expect((await post("/session/create", { prompt: "Ours", ...wrong })).status).toBe(200);
  }
});

const refusals: [name: string, body: unknown, said: string][] = [
  ["neither prompt nor description", {}, "prompt or description is required"],
  ["an empty prompt", { prompt: "" }, "prompt must not be empty"],
  ["a null prompt", { prompt: null }, "prompt must be a string"],
  ["NUL in the prompt", { prompt: "a\0b" }, "NUL"],
  ["half a surrogate pair", { prompt: "a\ud800" }, "Unicode"],
  ["a prompt that is too long", { prompt: "x".repeat(100_001) }, "at most 100,000 characters"],
  ["an agent without a colon", { prompt: "x", agent: "opencode" }, "agent must be written <provider>:<model>"],
  ["an agent that is not known", { prompt: "x", agent: "nobody:m" }, "the providers are opencode"],
  ["credentials in a URL", { prompt: "x", repositories: ["https://u:p@host/a/b"] }, "must not contain credentials"],
  ["a local repository", { prompt: "x", repositories: ["/srv/repository"] }, "OFFSTAGE_ALLOW_LOCAL_REPOSITORIES"],
  [
    "too many repositories",
    { prompt: "x", repositories: Array.from({ length: 21 }, (_, n) => `https://h/a/${n}`) },
    "repositories",
  ],
  ["a repository id that is not there", { prompt: "x", codeRepoIds: ["nope"] }, "no repository nope"],
  ["a URL with a broken escape", { prompt: "x", repositories: ["file:///a%zz"] }, "repositories.0 has a %"],
  ["a flag that is none", { prompt: "x", queueRightAway: "no" }, "queueRightAway must be true or false"],
  [
    "half a surrogate pair in a branch",
    { prompt: "x", branchName: "a\ud800" },
    "branchName is not a valid git branch name",
  ],
  ["a branch that git refuses", { prompt: "x", branchName: "a..b" }, "branchName is not a valid git branch name"],
  [
    "one branch for both",
    { prompt: "x", branchName: "a", targetBranch: "a" },
    "branchName must differ from targetBranch",
  ],
  ["labels that are no list", { prompt: "x", pullRequest: { labels: "bug" } }, "pullRequest.labels must be a"],
  ["a misspelt field", { prompt: "x", pullRequest: { label: ["bug"] } }, "label"],
  [
    "too many reviewers",
    { prompt: "x", pullRequest: { reviewers: Array.from({ length: 21 }, (_, n) => `r${n}`) } },
    "pullRequest.reviewers must have at most 20 names",
  ],
  [
    "a name with a line break",
    { prompt: "x", pullRequest: { assignees: ["ada\nbo"] } },
    "pullRequest.assignees.0 must be a name as the forge has it",
  ],
  ["a body that is no object", [], "the body must be a JSON object"],
];

test("how pull requests are opened is kept, with what was left out", async () => {
  const pullRequest = { draft: true, labels: ["bug"], reviewers: ["acme/core", "ada"] };
  const { body } = await post("/session/create", { prompt: "x", pullRequest });
  expect((await testApp.get(`/session/${body.id}`)).body.pullRequest).toEqual({ ...pullRequest, assignees: [] });
  const { body: usual } = await post("/session/create", { prompt: "x", pullRequest: null });
  expect((await testApp.get(`/session/${usual.id}`)).body.pullRequest).toBeNull();
});

test.each(refusals)("session creation refuses %s", async (_name, body, said) => {
  const answer = await post("/session/create", body);
  expect(answer.status).toBe(400);
  expect(Object.keys(answer.body)).toEqual(["error"]);
  expect(answer.body.error).toContain(said);
});

test("keys: none is 400 on creation and 401 elsewhere, a wrong one 401, one without the scope 403", async () => {
  expect((await post("/session/create", { prompt: "x" }, { key: null })).status).toBe(400);
  expect((await post("/automation/any/trigger", {}, { key: null })).status).toBe(401);
  expect((await post("/session/create", { prompt: "x" }, { key: "ofs_wrong" })).status).toBe(401);
  expect((await post("/session/create", { prompt: "x" }, { key: reader })).status).toBe(403);
});

test("a body that is no JSON is 400, one above 1 MiB 413, a path that is not there 404", async () => {
  expect((await post("/session/create", null, { raw: "{" })).status).toBe(400);
  expect((await post("/session/create", { prompt: "x".repeat(1024 * 1024) })).status).toBe(413);
  expect((await post("/session/nothing/here", {})).status).toBe(404);
});

test("a trigger queues the specification's job, by id and macro, by header and query, under both names", async () => {
  const { body: automation } = await post("/automation/create", {
    name: "Fix",
    macro: "fix-it",
    instructions: "Fix {{ event.n }}",
  });
  const ways: [url: string, call: Call][] = [
    [`/automation/${automation.id}/trigger`, {}],
    ["/automation/fix-it/trigger", {}],
    [`/automation/fix-it/trigger?apiKey=${admin}`, { key: null }],
    ["/agent/fix-it/trigger", {}],
    ["/api/public-api/automation/fix-it/trigger", {}],
  ];
  for (const [url, call] of ways) {
    const { status, body } = await post(url, { n: 1 }, call);
    expect(status).toBe(200);
    const task = url.startsWith("/agent/") ? "RunAgent" : "RunWorkflow";
    expect((await testApp.get(`/job/${body.id}`)).body).toMatchObject({ task });
    expect(body).toMatchObject({ task, status: "pending", priority: 5 });
    expect(Object.keys(body).toSorted()).toEqual(["createdAt", "id", "priority", "status", "task", "updatedAt"]);
  }
});

test("published clients send messages and stop sessions by their own names, under their prefix too", async () => {
  for (const prefix of ["", "/api/public-api"]) {
    const { body } = await post(`${prefix}/session/create`, { prompt: "Fix it" });
    const more = await post(`${prefix}/session/${body.id}/messages`, { message: "And the tests" });
    expect(more).toMatchObject({ status: 200, body: { id: body.id, status: "queued" } });
    const stopped = await post(`${prefix}/session/${body.id}/stop`, {});
    expect(stopped).toMatchObject({ status: 200, body: { id: body.id, status: "cancelled" } });
  }
});

test("an agent's name may end with a level of reasoning, and one that the provider lacks is refused with the list", async () => {
  const create = (agent: string) => post("/session/create", { prompt: "Fix it", agent, queueRightAway: false });
  for (const agent of [
    "codex:gpt-5:high",
    "codex:gpt-5.1-codex:low",
    "opencode:compatible/qwen:7b",
    "opencode:qwen:latest",
  ])
    expect(await create(agent)).toMatchObject({ status: 200 });
  expect(await create("codex:gpt-5:ultra")).toMatchObject({
    status: 400,
    body: { error: "agent: codex has no reasoning level ultra; the levels are low, medium, high" },
  });
});

test("a trigger refuses what is not there, paused, or no object", async () => {
  await post("/automation/create", { name: "Paused", macro: "paused-one", instructions: "x", paused: true });
  expect(await post("/automation/none/trigger", {})).toMatchObject({
    status: 404,
    body: { error: "automation none was not found" },
  });
  expect((await post("/automation/paused-one/trigger", {})).status).toBe(409);
  for (const raw of ["[1]", '"x"', "1", "true", "null", " null "]) {
    const answer = await post("/automation/fix-it/trigger", null, { raw });
    expect([raw, answer.status, answer.body.error]).toEqual([raw, 400, "the body must be a JSON object"]);
  }
  expect((await post("/automation/fix-it/trigger", null, { raw: "no json" })).status).toBe(400);
  expect((await post("/automation/fix-it%00/trigger", {})).status).toBe(404);
});

test("a trigger without a body, or with an empty one, has the empty object for its event", async () => {
  const authorization = `Bearer ${admin}`;
  for (const headers of [{ authorization }, { authorization, "content-type": "application/json" }]) {
    const answer = await app.inject({ method: "POST", url: "/automation/fix-it/trigger", headers });
    expect(answer.statusCode).toBe(200);
  }
});

test("a body is 400 if it is nested too deep, under an Idempotency-Key as well", async () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  for (const url of ["/session/create", "/automation/fix-it/trigger"]) {
    for (const headers of [{}, { "idempotency-key": `deep${url}` }]) {
      const answer = await post(url, null, { raw: `{"prompt":"x","more":${deep}}`, headers });
      expect([url, answer.status, answer.body.error]).toEqual([url, 400, "the body is nested deeper than 64 levels"]);
    }
  }
});

test("a repository counts once, by whatever URL or id it is named, and 20 may be named", async () => {
  const urls = Array.from({ length: 20 }, (_, number) => `https://git.example.com/count/${number}`);
  const { status, body } = await post("/session/create", {
    prompt: "x",
    repositories: [...urls, `${urls[0]}.git`, "git@git.example.com:count/1.git"],
  });
  expect(status).toBe(200);
  const { repositories } = (await testApp.get(`/session/${body.id}`)).body;
  expect(repositories.map(({ url }: { url: string }) => url)).toEqual(urls);
  const codeRepoIds = repositories.map(({ id }: { id: string }) => id);
  expect((await post("/session/create", { prompt: "x", repositories: urls, codeRepoIds })).status).toBe(200);
});

test("a request that names too many repositories connects none of them", async () => {
  const connected = async () => (await testApp.get("/repository/list?limit=100")).body.codeRepositories;
  const before = await connected();
  const repositories = Array.from({ length: 20 }, (_, number) => `https://git.example.com/many/${number}`);
  const answer = await post("/session/create", { prompt: "x", repositories, codeRepoIds: [before[0].id] });
  expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining("name 21 repositories") } });
  expect(await connected()).toEqual(before);
});

test("a work branch is refused that is the repository's own branch, whatever the target", async () => {
  const url = "https://git.example.com/target/default";
  const { body } = await post("/repository/create", { url, branch: "trunk" });
  for (const named of [{ repositories: [url] }, { codeRepoIds: [body.id] }]) {
    for (const targetBranch of [null, "main"]) {
      const answer = await post("/session/create", { prompt: "x", branchName: "trunk", targetBranch, ...named });
      expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining("branchName must differ") } });
    }
    const other = { prompt: "x", branchName: "work", targetBranch: "main", queueRightAway: false, ...named };
    expect((await post("/session/create", other)).status).toBe(200);
  }
});

test("if the prompt is blank the title is the description's", async () => {
  const { body } = await post("/session/create", { prompt: " \n", description: "Fix it" });
  expect(body).toMatchObject({ title: "Fix it", description: "Fix it" });
});

test("a refusal names the field as the request has it, and what it takes", async () => {
  const said = async (url: string, body: unknown) => (await post(url, body)).body.error;
  expect(await said("/organization/update", { defaultAgent: "nobody:m" })).toMatch(/^defaultAgent: there is no/u);
  expect(await said("/key/create", { name: "x", expiresAt: "tomorrow" })).toMatch(/^expiresAt must be a time in UTC/u);
  expect(await said("/login/create", { token: "x", key: "y" })).toMatch(/^the body must be \{"token"/u);
});

test("more requests in a minute than a key may make are 429 with Retry-After, before anything else is looked at", async () => {
  const limited = await testApp.another({ rateLimitPerMinute: 2 });
  const ask = () => limited.inject({ url: "/session/none", headers: { authorization: `Bearer ${admin}` } });
  expect([(await ask()).statusCode, (await ask()).statusCode]).toEqual([404, 404]);
  const refused = await ask();
  expect([refused.statusCode, refused.headers["ratelimit-remaining"]]).toEqual([429, "0"]);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  expect(refused.json()).toEqual({ error: expect.stringContaining("more than 2 requests a minute") });
});

test("the same Idempotency-Key gives the first answer again, and refuses another body", async () => {
  const headers = { "idempotency-key": "once" };
  const first = await post("/session/create", { prompt: "once" }, { headers });
  const again = await post("/session/create", { prompt: "once" }, { headers });
  expect(again.body).toEqual(first.body);
  expect(again.headers["idempotent-replayed"]).toBe("true");
  expect((await post("/session/create", { prompt: "twice" }, { headers })).status).toBe(409);
});

test("the description of the API names session creation as the specification does", async () => {
  const document = (await app.inject({ url: "/openapi.json" })).json();
  expect(document).toMatchObject({ openapi: "3.1.0", info: { version: "1.0.0" } });
  expect(document.paths["/session/create"].post.operationId).toBe("postPublic-apiSessionCreate");
});

test("the description of the API says what is so beside the schemas", async () => {
  const { paths } = (await app.inject({ url: "/openapi.json" })).json();
  const creation = paths["/session/create"].post;
  expect([creation.requestBody.required, creation.security]).toEqual([true, undefined]);
  for (const noun of ["automation", "agent"]) {
    const { requestBody, parameters } = paths[`/${noun}/{keyOrId}/trigger`].post;
    expect(requestBody.required).toBe(false);
    expect(requestBody.content["application/json"].schema).toMatchObject({ type: "object" });
    expect(parameters).toContainEqual(expect.objectContaining({ in: "header", name: "Idempotency-Key" }));
  }
  for (const path of ["/login/create", "/login/delete"]) expect(paths[path].post.security).toEqual([]);
  const events = paths["/session/{id}/events"].get;
  expect(Object.keys(events.responses["200"].content)).toEqual(["application/json", "text/event-stream"]);
  expect(events.parameters).toContainEqual(expect.objectContaining({ in: "header", name: "Last-Event-ID" }));
});

test("the description of the API says of each operation what it does", async () => {
  const { paths } = (await app.inject({ url: "/openapi.json" })).json();
  const operations = Object.entries(paths as Record<string, Record<string, { summary?: string }>>).flatMap(
    ([path, methods]) => Object.entries(methods).map(([method, { summary }]) => ({ path, method, summary })),
  );
  expect(operations.length).toBeGreaterThan(60);
  expect(operations.filter(({ summary }) => summary === undefined)).toEqual([]);
});

test.each(["x", "2026-02-30T00:00:00.000000Z 00000000-0000-4000-8000-000000000000", "0000-01-01T00:00:00.000000Z x"])(
  "a cursor that no list gave is 400: %j",
  async (text) => {
    const cursor = Buffer.from(text).toString("base64url");
    for (const list of ["/session/list", "/automation/list", "/job/list", "/repository/list", "/key/list"]) {
      for (const forged of [text, cursor]) {
        const { status } = await testApp.request("GET", `${list}?cursor=${encodeURIComponent(forged)}`);
        expect([list, status]).toEqual([list, 400]);
      }
    }
  },
);

test("an id that is no UUID is not found, and breaks nothing", async () => {
  for (const path of ["/session/x/cancel", "/key/x/revoke", "/repository/x/delete", "/automation/x/delete"]) {
    expect([path, (await post(path, {})).status]).toEqual([path, 404]);
  }
});
