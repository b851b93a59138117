import { afterAll, beforeAll, expect, test } from "vitest";
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

test("an organization's list says which repositories may be named, wherever they are", async () => {
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
