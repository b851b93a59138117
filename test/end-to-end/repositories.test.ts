import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { asAzure } from "../forge/azure-url.ts";
import { inOtherClone } from "../other-clone.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** Sessions whose repositories, branches and forges are not the plain case. */
let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

const basic = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" };

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, basic));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function repository(files: Record<string, string> = { "a.txt": "a\n" }, owner = "acme") {
  const name = `repository-${(count += 1)}`;
  return { name, url: (await world.forge.createRepository(owner, name, files)).url };
}

test("a session over two repositories opens one pull request in each that changed", async () => {
  const [one, two, same] = [await repository(), await repository(), await repository()];
  const { id } = await client.session.create({
    prompt: `shell for d in ${one.name} ${two.name}; do echo b > $d/b.txt; done; ls`,
    repositories: [one.url, two.url, same.url],
  });
  const session = await untilOver(client, id);
  expect(session.status).toBe("completed");
  expect(session.pullRequests).toHaveLength(2);
  for (const { name } of [one, two]) {
    expect(await world.forge.pullRequests("acme", name)).toMatchObject([{ head: session.branchName, base: "main" }]);
  }
  expect(await world.forge.pullRequests("acme", same.name)).toEqual([]);
  const { repositories } = await client.session.diff(id);
  expect(repositories.filter(({ patch }) => patch.includes("+b"))).toHaveLength(2);
});

test("the branch name and the target branch of the request are used", async () => {
  const { name, url } = await repository();
  await inOtherClone(
    world,
    url,
    "git checkout -q -b release/2 && echo r > r.txt && git add . && git commit -qm R && git push -q origin release/2",
  );
  const { id } = await client.session.create({
    prompt: "shell cat r.txt > seen.txt",
    repositories: [url],
    branchName: "fix/seen",
    targetBranch: "release/2",
  });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", branchName: "fix/seen" });
  expect(await world.forge.pullRequests("acme", name)).toMatchObject([{ head: "fix/seen", base: "release/2" }]);
  expect(await inOtherClone(world, url, "git show origin/fix/seen:seen.txt")).toBe("r");
});

test("nothing is pushed onto the default branch, nor the configured one, by naming it as the work branch", async () => {
  const { name, url } = await repository();
  await inOtherClone(world, url, "git push -q origin HEAD:refs/heads/dev HEAD:refs/heads/stable");
  const before = await inOtherClone(world, url, "git ls-remote origin");
  const named = { prompt: "write evil.txt: unreviewed", repositories: [url], targetBranch: "dev" };
  const byDefault = await client.session.create({ ...named, branchName: "main" });
  expect(await untilOver(client, byDefault.id)).toMatchObject({
    status: "failed",
    failure: { code: "branch_protected" },
  });
  // The settings name another one only after the session was made.
  const late = await client.session.create({ ...named, branchName: "stable", queueRightAway: false });
  const [connected] = (await client.session.get(late.id)).repositories;
  await callApi(offstage.url, `/repository/${connected?.id}/update`, { branch: "stable" });
  await callApi(offstage.url, `/session/${late.id}/queue`, {});
  expect(await untilOver(client, late.id)).toMatchObject({ status: "failed", failure: { code: "branch_protected" } });
  expect(await inOtherClone(world, url, "git ls-remote origin")).toBe(before);
  expect(await world.forge.pullRequests("acme", name)).toEqual([]);
});

test("a repository that was taken off the organization's list ends the sessions that name it", async () => {
  const { url } = await repository();
  const { id } = await client.session.create({ prompt: "say hello", repositories: [url], queueRightAway: false });
  await callApi(offstage.url, "/organization/update", { repositories: ["git.example/acme/*"] });
  try {
    await callApi(offstage.url, `/session/${id}/queue`, {});
    expect(await untilOver(client, id)).toMatchObject({
      status: "failed",
      failure: { code: "repository_not_allowed" },
    });
  } finally {
    await callApi(offstage.url, "/organization/update", { repositories: null });
  }
});

test("a branch that is there already is worked on, and its open pull request is the one", async () => {
  const { name, url } = await repository();
  const first = await client.session.create({ prompt: "write one.txt: 1", repositories: [url], branchName: "shared" });
  await untilOver(client, first.id);
  const second = await client.session.create({
    prompt: "shell cat one.txt > two.txt",
    repositories: [url],
    branchName: "shared",
  });
  expect((await untilOver(client, second.id)).pullRequests).toMatchObject([{ number: 1 }]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  expect(await inOtherClone(world, url, "git show origin/shared:two.txt")).toBe("1");
});

test("the repository's pull request template is honoured", async () => {
  const { name, url } = await repository({
    "a.txt": "a\n",
    ".github/pull_request_template.md": "## What\n\n## Checklist\n- [ ] Tests\n",
  });
  const { id } = await client.session.create({ prompt: "write b.txt: b", repositories: [url] });
  await untilOver(client, id);
  const [pullRequest] = await world.forge.pullRequests("acme", name);
  expect(pullRequest?.body).toContain("- [ ] Tests");
  expect(pullRequest?.body).toContain(`/sessions/${id}`);
});

test.each([
  [{ targetBranch: "nowhere" }, "target_branch_not_found"],
  [{ branchName: "main" }, "pull_request_refused"],
])("a session with %j fails as %s, before the agent works", async (wish, code) => {
  const { url } = await repository();
  const before = await inOtherClone(world, url, "git rev-parse origin/main");
  const { id } = await client.session.create({ prompt: "write b.txt: b", repositories: [url], ...wish });
  expect(await untilOver(client, id)).toMatchObject({ status: "failed", failure: { code } });
  const { events } = await client.session.events(id, { limit: 1_000 });
  expect(events.filter(({ type }) => type === "agent.started")).toEqual([]);
  expect(await inOtherClone(world, url, "git rev-parse origin/main")).toBe(before);
});

test("a repository whose default branch has no commit fails with what to do", async () => {
  const { url } = await repository({});
  const { id } = await client.session.create({ prompt: "write b.txt: b", repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({
    failure: { code: "target_branch_not_found", remedy: "Push a first commit to a branch, then retry." },
  });
});

test.each([
  ["azure", ""],
  ["gitlab", "/api/v4"],
  ["gitea", "/api/v1"],
  ["bitbucket", "/2.0"],
  ["bitbucketDataCenter", "/rest/api/latest"],
  ["git", null],
] as const)("a session on %s ends with its pull request, and on plain git with its branch", async (kind, below) => {
  const other = await createWorld(script);
  const owner = kind === "gitlab" ? "acme/platform/tools" : "acme";
  const api = below === null ? {} : { apiUrl: `${other.forge.url}${below}` };
  const forges = [{ kind, webUrl: other.forge.url, ...api, token: other.forge.token }];
  const started = await startInProcess(other, { ...basic, OFFSTAGE_FORGES: JSON.stringify(forges) });
  try {
    const { url: made } = await other.forge.createRepository(owner, kind, { "a.txt": "a\n" });
    const center = `${other.forge.url}/scm/${owner}/${kind}.git`;
    const url = kind === "azure" ? asAzure(made) : kind === "bitbucketDataCenter" ? center : made;
    const { id } = await started.client.session.create({
      prompt: "write b.txt: b",
      repositories: [url],
      branchName: "work",
    });
    const session = await untilOver(started.client, id);
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(session.pullRequests).toHaveLength(below === null ? 0 : 1);
    expect(await other.forge.pullRequests(owner, kind)).toHaveLength(below === null ? 0 : 1);
    const { events } = await started.client.session.events(id, { limit: 1_000 });
    expect(events.filter(({ type }) => type === "branch.pushed")).toMatchObject([{ data: { branch: "work" } }]);
  } finally {
    await started.offstage.stop();
    await other.close();
  }
});
