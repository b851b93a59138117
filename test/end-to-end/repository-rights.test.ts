import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import type { TestForge } from "../forge/server.ts";
import type { RepositoryFacts } from "../forge/state.ts";
import { makeKey, sshServerProblem, startSshServer, type SshServer } from "../worker/ssh-server.ts";
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

test("a forge that answers 502 when it is asked for rights stops nothing", async () => {
  await world.forge.failNext({ kind: "status", status: 502, at: "repository" });
  expect((await runOn({ archived: true })).done.status).toBe("completed");
});

test.each([404, 403])("a forge that answers %i when it is asked for rights is asked once more", async (status) => {
  await world.forge.failNext({ kind: "status", status, at: "repository" });
  expect((await runOn({ archived: true })).done.failure?.reason).toContain("is archived");
});

test("rules for pushes to the work branch are reported before the work", async () => {
  const rules = [{ type: "deletion" }, { type: "branch_name_pattern", pattern: "feature/" }];
  const { done, notices } = await runOn({ rules });
  expect(done.status).toBe("completed");
  expect(notices).toEqual([expect.stringContaining("branch_name_pattern (starts_with feature/)")]);
  expect(notices[0]).not.toContain("deletion");
});

test("a change of workflows without the scope for it is reported before the push, and the work kept", async () => {
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

describe("a server without an API, on which the right to push is asked of git", () => {
  interface Started {
    readonly client: Client;
    readonly world: World;
  }

  /** @param more further settings, made once the forge is there */
  async function onPlainGit(
    work: (started: Started) => Promise<void>,
    more: (forge: TestForge) => Promise<Record<string, string>> = () => Promise.resolve({}),
  ): Promise<void> {
    const own = await createWorld(script);
    const { url, token } = own.forge;
    const started = await startInProcess(own, {
      OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
      OFFSTAGE_FORGES: JSON.stringify([{ kind: "git", webUrl: url, token }]),
      ...(await more(own.forge)),
    });
    try {
      await work({ client: started.client, world: own });
    } finally {
      await started.offstage.stop();
      await own.close();
    }
  }

  /** A session that would change something, and how many requests to a model it took. */
  async function workOn({ client: asked, world: { model } }: Started, url: string) {
    const before = model.requests.length;
    const { id } = await asked.session.create({ prompt: "write a.txt: a", repositories: [url] });
    const done = await untilOver(asked, id);
    return { done, requests: model.requests.length - before };
  }

  const denied = { status: "failed", failure: { code: "repository_access_denied", passing: false } };

  test("over HTTP", () =>
    onPlainGit(async (started) => {
      const { forge } = started.world;
      const { url } = await forge.createRepository("acme", "app", { "README.md": "# Before\n" });
      forge.describe("acme", "app", { gitPush: false });
      const refused = await workOn(started, url);
      expect(refused).toMatchObject({ done: denied, requests: 0 });
      expect(refused.done.failure?.reason).toContain("Permission denied to the token's user");
      // The control: the same credential, which may.
      forge.describe("acme", "app", {});
      const allowed = await workOn(started, url);
      expect(allowed.done).toMatchObject({ status: "completed", failure: null });
      expect(allowed.requests).toBeGreaterThan(0);
    }));

  const problem = sshServerProblem();

  test.skipIf(problem !== null)(`by ssh${problem === null ? "" : ` (not tried: ${problem})`}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "offstage-rights-"));
    let server: SshServer | undefined;
    async function startSsh(forge: TestForge): Promise<Record<string, string>> {
      server = await startSshServer(join(folder, "sshd"), dirname(dirname(forge.pathOf("acme", "app"))));
      const key = await makeKey(join(folder, "key"));
      const known = join(folder, "known");
      await server.authorize(await readFile(`${key}.pub`, "utf8"));
      await writeFile(known, server.knownHost);
      return { OFFSTAGE_SSH_KEYS: JSON.stringify({ "127.0.0.1": key }), OFFSTAGE_SSH_KNOWN_HOSTS: known };
    }
    try {
      await onPlainGit(async (started) => {
        await started.world.forge.createRepository("acme", "app", { "README.md": "# Before\n" });
        const url = `${server?.url ?? ""}/acme/app`;
        await server?.readOnly(true);
        const refused = await workOn(started, url);
        expect(refused).toMatchObject({ done: denied, requests: 0 });
        expect(refused.done.failure?.reason).toContain("marked as read only");
        await server?.readOnly(false);
        const allowed = await workOn(started, url);
        expect(allowed.done).toMatchObject({ status: "completed", failure: null });
        expect(allowed.requests).toBeGreaterThan(0);
      }, startSsh);
    } finally {
      await server?.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
