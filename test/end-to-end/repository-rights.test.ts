import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import type { RepositoryFacts } from "../forge/state.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function runOn(
  facts: RepositoryFacts,
  request: { readonly prompt?: string; readonly files?: Record<string, string> } = {},
): Promise<{ name: string; asked: number; done: SessionDetail; notices: string[] }> {
  const { prompt = "write a.txt: a", files = { "README.md": "# Before\n" } } = request;
  const name = `rights-${(count += 1)}`;
  const { url } = await world.forge.createRepository("acme", name, files);
  world.forge.describe("acme", name, facts);
  const before = world.model.requests.length;
  const { id } = await client.session.create({ prompt, repositories: [url] });
  const done = await untilOver(client, id);
  return { name, asked: world.model.requests.length - before, done, notices: await noticesOf(client, id) };
}

test.each<[string, RepositoryFacts, string, string]>([
  ["an archived repository", { archived: true }, "repository_access_denied", "is archived"],
  ["a disabled one", { disabled: true }, "repository_access_denied", "is disabled"],
  ["a token that may not push", { push: false }, "repository_access_denied", "may not push to"],
  ["pull requests that are turned off", { hasPullRequests: false }, "pull_request_refused", "turned off"],
])("%s ends a session before the first request to a model", async (_, facts, code, words) => {
  const { asked, done } = await runOn(facts);
  expect(done).toMatchObject({ status: "failed", failure: { code, retryable: false } });
  expect(done.failure?.reason).toContain(words);
  expect(asked).toBe(0);
});

test("a repository whose forge says nothing against it is worked on, with requests to a model", async () => {
  const { asked, done, name } = await runOn({});
  expect(done.status).toBe("completed");
  expect(asked).toBeGreaterThan(0);
  const about = world.forge.asked().filter((path) => path.startsWith(`GET /api/v3/repos/acme/${name}`));
  // Of the target branch it is asked who may approve, once the pull request is open.
  const [approval, rights] = [/\/main(?:\/protection)?$/u, /^(?!.*\/main(?:\/protection)?$)/u].map((words) =>
    about.filter((path) => !path.includes("/pulls") && words.test(path)),
  );
  expect([approval, rights]).toEqual([expect.objectContaining({ length: 2 }), expect.objectContaining({ length: 2 })]);
});

test.each([404, 403, 502])("a forge that answers %i when it is asked for rights stops nothing", async (status) => {
  await world.forge.failNext({ kind: "status", status, at: "repository" });
  expect((await runOn({ archived: true })).done.status).toBe("completed");
});

test("rules for pushes to the work branch are told before the work", async () => {
  const rules = [{ type: "deletion" }, { type: "branch_name_pattern", pattern: "feature/" }];
  const { done, notices } = await runOn({ rules });
  expect(done.status).toBe("completed");
  expect(notices).toEqual([expect.stringContaining("branch_name_pattern (starts_with feature/)")]);
  expect(notices[0]).not.toContain("deletion");
});

test("a change of workflows without the scope for it is told before the push, and the work kept", async () => {
  world.forge.setScopes("repo, read:org");
  try {
    const files = { ".github/workflows/test.yml": "on: push\n" };
    const { name, done, notices } = await runOn({}, { prompt: "write .github/workflows/test.yml: on: pull", files });
    expect(done).toMatchObject({ status: "failed", failure: { code: "repository_access_denied" } });
    expect(done.failure?.remedy).toContain("workflow");
    expect(notices).toContainEqual(expect.stringContaining("may not change files in .github/workflows"));
    expect((await client.session.diff(done.id)).repositories[0]?.patch).toContain("+on: pull");
    expect(await world.forge.pullRequests("acme", name)).toEqual([]);
    // Other files are no matter.
    expect((await runOn({}, { files })).done.status).toBe("completed");
    world.forge.setScopes("repo, workflow");
    const allowed = await runOn({}, { prompt: "write .github/workflows/test.yml: on: pull", files });
    expect(allowed.done.status).toBe("completed");
    expect(allowed.notices).toEqual([]);
  } finally {
    world.forge.setScopes(null);
  }
});
