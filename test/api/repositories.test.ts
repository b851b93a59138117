import { afterAll, beforeAll, expect, test } from "vitest";
import { isAddressProblem, parseRepositoryUrl } from "../../src/domain/repositories/repository.ts";
import { createForges } from "../../src/forges/forges.ts";
import { newConversation } from "../../src/domain/conversations/conversation.ts";
import { settleRepositoryKeys } from "../../src/store/repositories/repository-keys.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;

beforeAll(async () => {
  api = await createTestApp();
});

afterAll(() => api?.close());

const keyOf = async (role: string): Promise<string> => (await api.post("/key/create", { name: role, role })).body.key;

test("a member can't disconnect a repository, and so neither its secrets nor its limits", async () => {
  const { body: repository } = await api.post("/repository/create", { url: "https://git.example/acme/kept" });
  for (const role of ["member", "viewer"]) {
    const answer = await api.post(`/repository/${repository.id}/delete`, {}, { key: await keyOf(role) });
    expect(answer.status).toBe(403);
  }
  const { body: list } = await api.get("/repository/list");
  expect(list.codeRepositories.map(({ id }: { id: string }) => id)).toContain(repository.id);
});

test("one repository is shown as the list shows it, to viewers too, until it is disconnected", async () => {
  const { body: repository } = await api.post("/repository/create", { url: "https://git.example/acme/shown" });
  const path = `/repository/${repository.id}`;
  await api.post(`${path}/update`, { name: "Shown", description: "A note" });
  const shown = await api.get(path, { key: await keyOf("viewer") });
  expect(shown.body).toMatchObject({ name: "Shown", description: "A note" });
  const { body: list } = await api.get("/repository/list?limit=100");
  expect(list.codeRepositories).toContainEqual(shown.body);
  expect((await api.get("/repository/no-id")).status).toBe(404);
  await api.post(`${path}/delete`, {});
  const gone = await api.get(path);
  expect([gone.status, gone.body.error]).toEqual([404, `repository ${repository.id} was not found`]);
});

test("a repository that was disconnected comes back with its settings, however it is connected again", async () => {
  const url = "https://git.example/acme/again";
  const { body: repository } = await api.post("/repository/create", { url, branch: "stable", name: "again" });
  const path = `/repository/${repository.id}`;
  await api.post(`${path}/limits`, { maxRunningSessions: 1 });
  await api.post(`${path}/egress`, { egress: ["db.example:5432"] });
  await api.post(`${path}/environment`, { setupScript: "make ready", variables: { CI: "true" } });
  await api.post("/secret/create", { name: "TOKEN", value: "a secret value", repositoryId: repository.id });
  for (const connect of [
    () => api.post("/repository/create", { url: "https://GIT.example/acme/again.git" }),
    () => api.post("/session/create", { prompt: "x", repositories: [url], queueRightAway: false }),
  ]) {
    expect((await api.post(`${path}/delete`, {})).status).toBe(200);
    expect((await api.get(`${path}/limits`)).status).toBe(404);
    expect((await connect()).status).toBe(200);
    expect((await api.get(`${path}/limits`)).body).toEqual({ maxRunningSessions: 1 });
    expect((await api.get(`${path}/egress`)).body).toEqual({ egress: ["db.example:5432"] });
    expect((await api.get(`${path}/environment`)).body).toMatchObject({
      setupScript: "make ready",
      variables: { CI: "true" },
    });
    const { body: secrets } = await api.get("/secret/list");
    expect(secrets.secrets).toEqual([]);
  }
  const { body: list } = await api.get("/repository/list");
  const same = list.codeRepositories.filter((listed: { url: string }) => listed.url.includes("acme/again"));
  expect(same).toMatchObject([{ id: repository.id, name: "again", branch: "stable" }]);
});

test("a repository that is connected by many at once after it was disconnected is one", async () => {
  const url = "https://git.example/acme/raced";
  const { body: repository } = await api.post("/repository/create", { url });
  for (let round = 0; round < 5; round += 1) {
    await api.post(`/repository/${repository.id}/delete`, {});
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.post("/repository/create", { url })));
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.id}`))).toEqual(
      new Set([`200 ${repository.id}`]),
    );
  }
});

test("a session can't name the branch that a repository is configured for as its work branch, whatever its target", async () => {
  const { body: one } = await api.post("/repository/create", { url: "https://git.example/acme/one", branch: "main" });
  const { body: two } = await api.post("/repository/create", { url: "https://git.example/acme/two", branch: "stable" });
  for (const body of [
    { branchName: "main" },
    { branchName: "main", targetBranch: "dev" },
    { branchName: "stable", targetBranch: "dev" },
  ]) {
    const request = { prompt: "x", codeRepoIds: [one.id, two.id], queueRightAway: false, ...body };
    for (const path of ["/session/create", "/task/create"]) {
      expect(await api.post(path, request)).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining(`branchName must differ from ${body.branchName}`) },
      });
    }
  }
});

test("an organization's list says which repositories may be named, on any host", async () => {
  const url = (name: string) => `https://git.example/${name}`;
  const { body: before } = await api.post("/repository/create", { url: url("elsewhere/early") });
  const repositories = ["git.example/acme/*"];
  expect((await api.post("/organization/update", { repositories })).body).toMatchObject({ repositories });
  try {
    const automation = { name: "listed", macro: "listed", instructions: "x" };
    const refused: [string, object, string][] = [
      ["/session/create", { prompt: "x", repositories: [url("acme/ok"), url("elsewhere/no")] }, "repositories.1"],
      ["/session/create", { prompt: "x", codeRepoIds: [before.id] }, "codeRepoIds"],
      ["/task/create", { prompt: "x", repositories: [url("elsewhere/no")] }, "repositories.0"],
      ["/automation/create", { ...automation, repositories: [url("elsewhere/no")] }, "repositories.0"],
      ["/repository/create", { url: url("elsewhere/no") }, "url"],
    ];
    for (const [path, body, field] of refused) {
      const answer = await api.post(path, body);
      expect([path, answer.status, answer.body.error]).toEqual([path, 400, expect.stringContaining(`${field}: `)]);
      expect(answer.body.error).toContain("is not on the list");
    }
    const { body: list } = await api.get("/repository/list?limit=100");
    expect(JSON.stringify(list)).not.toContain("elsewhere/no");
    // A request that is refused connects none of those that it names.
    expect(JSON.stringify(list)).not.toContain("acme/ok");
    const allowed = { prompt: "x", repositories: ["git@git.example:acme/ok.git"], queueRightAway: false };
    expect((await api.post("/session/create", allowed)).status).toBe(200);
    for (const wrong of [["git.example*"], ["x"], "git.example/acme/*"]) {
      expect((await api.post("/organization/update", { repositories: wrong })).status).toBe(400);
    }
  } finally {
    await api.post("/organization/update", { repositories: null });
  }
});

const github = (path: string) => `https://github.com/${path}`;
const idsOf = async (body: object): Promise<string[]> => {
  const { body: session } = await api.post("/session/create", { prompt: "x", queueRightAway: false, ...body });
  const { body: detail } = await api.get(`/session/${session.id}`);
  return detail.repositories.map(({ id }: { id: string }) => id);
};

test("on a forge that ignores capitals they make no second repository without the limits of the first", async () => {
  const { body: repository } = await api.post("/repository/create", { url: github("acme/capitals"), branch: "stable" });
  await api.post(`/repository/${repository.id}/limits`, { maxRunningSessions: 1 });
  for (const url of [
    github("ACME/Capitals"),
    "git@github.com:Acme/capitals.git",
    "ssh://git@ssh.github.com:443/acme/CAPITALS",
  ]) {
    expect(await idsOf({ repositories: [url] })).toEqual([repository.id]);
    expect((await api.post("/repository/create", { url })).body.id).toBe(repository.id);
    const onto = await api.post("/session/create", {
      prompt: "x",
      repositories: [url],
      branchName: "stable",
      queueRightAway: false,
    });
    expect(onto.status).toBe(400);
  }
  expect(await idsOf({ repositories: [github("acme/capitals"), github("Acme/Capitals")] })).toEqual([repository.id]);
  // Other hosts may distinguish case.
  const [one, other] = await Promise.all(
    ["app", "App"].map((name) => idsOf({ repositories: [`https://git.example/case/${name}`] })),
  );
  expect(one).not.toEqual(other);
});

/** As an older version wrote it. */
async function connectAsBefore(url: string, key: string): Promise<string> {
  const { body } = await api.post("/repository/create", { url: `https://git.example/before/${crypto.randomUUID()}` });
  await api.database.pool.query("update repository set url = $2, address_key = $3 where id = $1", [body.id, url, key]);
  return body.id;
}

const settle = () =>
  settleRepositoryKeys(api.database, (url) => {
    const address = parseRepositoryUrl(url);
    return isAddressProblem(address) ? null : createForges([]).keyOf(address);
  });

test("a repository that was connected under other capitals before is found by each spelling, with its settings", async () => {
  const id = await connectAsBefore(github("Old/App"), "github.com/Old/App");
  await api.post(`/repository/${id}/limits`, { maxRunningSessions: 2 });
  expect(await settle()).toBeGreaterThan(0);
  expect(await settle()).toBe(0);
  expect(await idsOf({ repositories: [github("old/app")] })).toEqual([id]);
  expect((await api.get(`/repository/${id}/limits`)).body).toEqual({ maxRunningSessions: 2 });
});

test("a repository that was disconnected under other capitals before comes back with its settings", async () => {
  const id = await connectAsBefore(github("Gone/App"), "github.com/Gone/App");
  await api.post(`/repository/${id}/limits`, { maxRunningSessions: 2 });
  await api.post(`/repository/${id}/delete`, {});
  await settle();
  expect(await idsOf({ repositories: [github("gone/app")] })).toEqual([id]);
  expect((await api.get(`/repository/${id}/limits`)).body).toEqual({ maxRunningSessions: 2 });
});

test("of several rows for one repository one is left, with the settings, secrets and automations of all", async () => {
  const bare = await connectAsBefore(github("twice/app"), "github.com/twice/app");
  const limited = await connectAsBefore(github("Twice/App"), "github.com/Twice/App");
  const third = await connectAsBefore(github("TWICE/APP"), "github.com/TWICE/APP");
  await api.post(`/repository/${limited}/limits`, { maxRunningSessions: 3 });
  await api.post(`/repository/${limited}/update`, { branch: "stable" });
  await api.post(`/repository/${third}/limits`, { maxRunningSessions: 1 });
  for (const [name, repositoryId] of [
    ["OF_BARE", bare],
    ["OF_BOTH", bare],
    ["OF_BOTH", limited],
  ]) {
    expect((await api.post("/secret/create", { name, value: "a secret value", repositoryId })).status).toBe(200);
  }
  const automation = { name: "twice", instructions: "x" };
  const { body: one } = await api.post("/automation/create", { ...automation, macro: "twice1", codeRepoIds: [bare] });
  const { body: two } = await api.post("/automation/create", {
    ...automation,
    macro: "twice2",
    codeRepoIds: [bare, limited],
  });
  const begun = await Promise.all(
    [[bare], [third], [bare, limited]].map(async (codeRepoIds) => {
      const { body } = await api.post("/session/create", { prompt: "x", codeRepoIds, queueRightAway: false });
      return body.id as string;
    }),
  );
  await api.database.pool.query(
    `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url)
     select gen_random_uuid(), organization_id, id, $2, branch_name, 'main', 7, 'https://github.com/twice/app/pull/7'
     from session where id = $1`,
    [begun[0], bare],
  );
  await Promise.all([settle(), settle()]);
  expect(await settle()).toBe(0);
  expect(await idsOf({ repositories: [github("tWICE/aPP")] })).toEqual([limited]);
  // Their secrets are masked, and their limits hold, for what goes on after that.
  const goneOn = await Promise.all(begun.map(async (id) => (await api.get(`/session/${id}`)).body));
  const idsIn = (list: { id: string }[]): string[] => list.map(({ id }) => id);
  expect(goneOn.map(({ repositories }) => idsIn(repositories))).toEqual([[limited], [limited], [bare, limited]]);
  expect(goneOn[0].pullRequests).toMatchObject([{ repositoryId: limited, number: 7 }]);
  expect((await api.get(`/repository/${limited}/limits`)).body).toEqual({ maxRunningSessions: 1 });
  for (const gone of [bare, third]) {
    const refused = await api.post("/session/create", { prompt: "x", codeRepoIds: [gone] });
    expect(refused).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining(`has no repository ${gone}`) },
    });
  }
  const { body: list } = await api.get("/automation/list?limit=100");
  for (const { id } of [one, two]) {
    const kept = list.automations.find((each: { id: string }) => each.id === id);
    expect(kept.repositories.map((each: { id: string }) => each.id)).toEqual([limited]);
  }
  const { body: held } = await api.get(`/secret/list?repositoryId=${limited}`);
  expect(held.secrets.map(({ name }: { name: string }) => name).toSorted()).toEqual(["OF_BARE", "OF_BOTH"]);
});

test("what was said about pull requests and issues of a repository goes on in the row that is left of it", async () => {
  const { pool } = api.database;
  const key = "github.com/talked/app";
  const kept = await connectAsBefore(github("talked/app"), key);
  const gone = await connectAsBefore(github("Talked/App"), "github.com/Talked/App");
  await api.post(`/repository/${kept}/limits`, { maxRunningSessions: 1 });
  const talk = async (repositoryId: string, number: number, turns: number): Promise<string> => {
    const run = { id: crypto.randomUUID(), kind: "followUp", threads: [null], pushedSha: null };
    const state = { ...newConversation, turns, told: [`told ${turns}`], runs: [run] };
    const { rows } = await pool.query<{ id: string }>(
      `insert into conversation (organization_id, repository_id, kind, number, state, spent_before_usd)
       values ($1, $2, 'pullRequest', $3, $4, $5) returning id`,
      [api.organizationId, repositoryId, number, JSON.stringify(state), turns],
    );
    const id = rows[0]?.id ?? "";
    await pool.query("insert into conversation_run (id, conversation_id, due_at) values ($1, $2, now())", [run.id, id]);
    await pool.query(
      "insert into conversation_item (organization_id, conversation_id, key) values ($1, $2, 'same'), ($1, $2, $3)",
      [api.organizationId, id, `comment of ${turns}`],
    );
    return id;
  };
  const alone = await talk(gone, 1, 3);
  await talk(gone, 2, 5);
  const both = await talk(kept, 2, 4);
  await Promise.all([settle(), settle()]);
  const { rows } = await pool.query(
    `select id, repository_id as repository, number, (state ->> 'turns')::integer as turns, spent_before_usd::integer as before,
       state -> 'told' as told, jsonb_array_length(state -> 'runs') as runs,
       (select count(*)::integer from conversation_run where conversation_id = conversation.id) as awaited,
       (select array_agg(key order by key) from conversation_item where conversation_id = conversation.id) as keys
     from conversation where repository_id = any($1) order by number`,
    [[kept, gone]],
  );
  expect(rows).toEqual([
    {
      id: alone,
      repository: kept,
      number: 1,
      turns: 3,
      before: 3,
      told: ["told 3"],
      runs: 1,
      awaited: 1,
      keys: ["comment of 3", "same"],
    },
    {
      id: both,
      repository: kept,
      number: 2,
      turns: 9,
      before: 4,
      told: ["told 5", "told 4"],
      runs: 2,
      awaited: 2,
      keys: ["comment of 4", "comment of 5", "same"],
    },
  ]);
});

test("a repository whose stored address can't be read any more is refused by its id, and says why", async () => {
  const odd: [string, string][] = [
    ["https://git.example/acme//x", "codeRepoIds: the address of ID has an empty or .. segment in its path"],
    ["https://user:password@git.example/acme/x", "must not contain credentials"],
    ["ssh://-oProxyCommand=x/acme/x", "has no host name"],
    ["/srv/repositories/local.git", "is a local path: the operator must allow local repositories"],
    ["https://git.example/acme/a%2F..%2Fb", "must not have an encoded / or \\ in its path"],
  ];
  for (const [index, [url, reason]] of odd.entries()) {
    const id = await connectAsBefore(url, `odd/${index}`);
    expect(await api.post("/session/create", { prompt: "x", codeRepoIds: [id] })).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining(reason.replace("ID", id)) },
    });
    await api.database.pool.query("update repository set deleted_at = now() where id = $1", [id]);
  }
});
