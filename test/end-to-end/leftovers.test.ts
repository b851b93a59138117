import { execFile, execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";
import { callApi } from "../call.ts";
import type { Script } from "../model/server.ts";
import { inOtherClone } from "../other-clone.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script as ordered } from "./script.ts";

/** What becomes of work that an agent leaves in an unexpected state. */
let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

/** What happens when a model is asked the next time: an agent has its clone by then. */
let atRequest: (() => void) | null = null;

/** As ordered, but that `fail once` fails once. */
const failed = new Set<string>();
const script: Script = (message, conversation) => {
  atRequest?.();
  atRequest = null;
  const order = message.replace(", then fail once", "");
  const actions = typeof ordered === "function" ? ordered(order, conversation) : ordered;
  if (order === message || conversation.step !== 1 || failed.has(message)) return actions;
  failed.add(message);
  return [...actions.slice(0, 1), { fail: { status: 400, message: "the scripted model fails" } }];
};

beforeAll(async () => {
  world = await createWorld(script);
  const settings = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_RETRY_HOURS: "0" };
  ({ offstage, client } = await startInProcess(world, settings));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function repository(name = `repository-${(count += 1)}`): Promise<{ name: string; url: string }> {
  return { name, url: (await world.forge.createRepository("acme", name, { "a.txt": "a\n" })).url };
}

/** The files of the session's branch, as the forge has it. */
async function filesOf(url: string, { branchName }: SessionDetail): Promise<string[]> {
  return (await inOtherClone(world, url, `git ls-tree -r --name-only 'origin/${branchName}'`)).split("\n");
}

async function run(url: string, prompt: string, wish: { branchName?: string } = {}): Promise<SessionDetail> {
  const { id } = await client.session.create({ prompt, repositories: [url], ...wish });
  return untilOver(client, id);
}

async function followUp({ id }: SessionDetail, message: string): Promise<SessionDetail> {
  await client.session.message(id, { message });
  return untilOver(client, id);
}

/** Changes a byte of the tree of what a repository's mirror has last. */
function breakTree(url: string): void {
  const mirror = createMirrors({ dataDirectory: world.data, allowLocalRepositories: false }).pathOf(url);
  const git = (...parameters: string[]): string => execFileSync("git", parameters, { cwd: mirror, encoding: "utf8" });
  const tree = git("rev-parse", "refs/offstage/latest/main^{tree}").trim();
  const packs = join(mirror, "objects/pack");
  const name = readdirSync(packs).find((each) => each.endsWith(".pack")) ?? "";
  const listed = git("verify-pack", "-v", join(packs, name.replace(/pack$/u, "idx")));
  const at = Number(new RegExp(`^${tree} tree +\\d+ \\d+ (\\d+)$`, "mu").exec(listed)?.[1]) + 6;
  const content = readFileSync(join(packs, name));
  content.writeUInt8(content.readUInt8(at) ^ 0xff, at);
  rmSync(join(packs, name));
  writeFileSync(join(packs, name), content);
}

/** The mirrors that are to be mended before their next use. */
async function markedMirrors(): Promise<string[]> {
  const names = await readdir(join(world.data, "mirrors"), { recursive: true });
  return names.filter((name) => name.endsWith("/offstage-damaged"));
}

const identity = "git config user.name A && git config user.email a@b.c";

test("what an agent may not read itself, and a repository that it began inside, are in the pull request", async () => {
  const { name, url } = await repository();
  const unread =
    "echo b > b.txt && chmod 000 b.txt && mkdir -p d/e && echo d > d/e/d.txt && chmod 000 d/e d && chmod -R a-w .git";
  const session = await run(url, `shell git init -q sub && echo c > sub/c.txt && ${unread}`);
  expect(session.failure).toBe(null);
  expect(await filesOf(url, session)).toEqual(["a.txt", "b.txt", "d/e/d.txt", "sub/c.txt"]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("an agent that removes its repository's folder is told apart from a crash, and goes on with the work before in the next turn", async () => {
  const { name, url } = await repository();
  const first = await run(url, "shell echo b > b.txt");
  const second = await followUp(first, 'shell rm -rf "$PWD"');
  expect(second.failure).toMatchObject({
    code: "workspace_broken",
    remedy: expect.stringContaining("message") as string,
  });
  expect(second.failure?.reason).toMatch(/^The agent removed its repository's folder/u);
  expect((await followUp(first, "shell echo c > c.txt")).failure).toBe(null);
  expect(await filesOf(url, first)).toEqual(["a.txt", "b.txt", "c.txt"]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("an agent that breaks objects of its clone fails, and the worker's own copy of the repository is not verified for that", async () => {
  const { url } = await repository();
  const broken = `f=.git/objects/$(git rev-parse HEAD:b.txt | sed "s|..|&/|") && chmod u+w $f && echo > $f`;
  const session = await run(url, `shell ${identity} && echo b > b.txt && git add . && git commit -qm B && ${broken}`);
  expect(session.failure?.code).toBe("workspace_broken");
  // Git's words are those about a mirror that is damaged.
  expect(session.failure?.reason).toMatch(/loose object [0-9a-f]+ \(stored in .+\) is corrupt/u);
  expect(await markedMirrors()).toEqual([]);
});

test("a worker's own copy of a repository that is found damaged in an agent's clone is mended, and the work goes on", async () => {
  const { name, url } = await repository();
  atRequest = () => breakTree(url);
  const session = await run(url, "shell echo b > b.txt");
  expect(session.failure).toMatchObject({
    code: "repository_unreachable",
    reason: expect.stringMatching(/^This worker's own copy of the repository is damaged: /u) as string,
  });
  expect(await markedMirrors()).toHaveLength(1);
  expect((await followUp(session, "shell echo c > c.txt")).failure).toBe(null);
  expect(await markedMirrors()).toEqual([]);
  expect(await filesOf(url, session)).toEqual(["a.txt", "b.txt", "c.txt"]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("what git ignores is no change", async () => {
  const { name, url } = await repository();
  await world.forge.commit("acme", name, "main", { ".gitignore": "*.log\n" });
  expect(await run(url, "shell echo x > x.log")).toMatchObject({ status: "completed", pullRequests: [] });
});

test("what an agent rewrites or takes back in follow-ups is so on the branch, on top of what was pushed", async () => {
  const { name, url } = await repository();
  const first = await run(url, "shell echo b > b.txt");
  const amend = `${identity} && echo c > c.txt && git add . && git commit -q --amend -m new`;
  expect((await followUp(first, `shell ${amend}`)).failure).toBe(null);
  expect(await filesOf(url, first)).toEqual(["a.txt", "b.txt", "c.txt"]);
  expect((await followUp(first, "shell echo d > d.txt")).failure).toBe(null);
  expect(await filesOf(url, first)).toEqual(["a.txt", "b.txt", "c.txt", "d.txt"]);
  expect((await followUp(first, "shell git reset -q --hard HEAD~1")).failure).toBe(null);
  expect(await filesOf(url, first)).toEqual(["a.txt", "b.txt", "c.txt"]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("what a turn that failed had committed is pushed, also if the next finds nothing more to do", async () => {
  const { name, url } = await repository();
  const commit = `${identity} && echo b > b.txt && git add . && git commit -qm B`;
  const first = await run(url, `shell test -e b.txt || { ${commit}; }, then fail once`);
  expect(first).toMatchObject({ status: "failed", failure: { code: "model_error" } });
  await client.session.queue(first.id);
  expect(await untilOver(client, first.id)).toMatchObject({ status: "completed", failure: null });
  expect(await filesOf(url, first)).toEqual(["a.txt", "b.txt"]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test.each(["merged", "closed"] as const)("a question after the pull request was %s opens no other", async (how) => {
  const { name, url } = await repository();
  const first = await run(url, "shell echo b > b.txt");
  if (how === "merged")
    await inOtherClone(
      world,
      url,
      `git merge -q --squash 'origin/${first.branchName}' && git commit -qm squashed && git push -q origin main`,
    );
  await inOtherClone(world, url, `git push -q origin --delete '${first.branchName}'`);
  world.forge.endPullRequest("acme", name, 1, how);
  const second = await followUp(first, "say just a question");
  expect(second.failure).toBe(null);
  expect((await world.forge.pullRequests("acme", name)).length).toBe(1);
  expect(await inOtherClone(world, url, "git branch -r")).not.toContain(first.branchName);
});

test("a question after the merge is answered, and a change is another pull request", async () => {
  const { name, url } = await repository();
  const first = await run(url, "shell echo b > b.txt");
  await inOtherClone(world, url, `git merge -q 'origin/${first.branchName}' && git push -q origin main`);
  world.forge.endPullRequest("acme", name, 1, "merged");
  expect(await followUp(first, "say just a question")).toMatchObject({
    failure: null,
    summary: "just a question",
  });
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  expect((await followUp(first, "shell echo c > c.txt")).pullRequests).toMatchObject([{ number: 2, state: "open" }]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(2);
});

test.each([
  [
    "ahead of",
    "git checkout -qb theirs && echo t > t.txt && git add . && git commit -qm T && git push -q origin theirs",
  ],
  [
    "behind",
    "git push -q origin main:theirs && echo t > t.txt && git add . && git commit -qm T && git push -q origin main",
  ],
])("of a branch %s the target, of which a session changes nothing, no pull request is opened", async (_, commands) => {
  const { name, url } = await repository();
  await inOtherClone(world, url, commands);
  const session = await run(url, "say hello", { branchName: "theirs" });
  expect(session).toMatchObject({ status: "completed", failure: null, pullRequests: [] });
  expect(await world.forge.pullRequests("acme", name)).toEqual([]);
});

/** As retention does with what was over for long. */
async function forget({ id }: SessionDetail): Promise<void> {
  await rm(join(world.data, "sessions", id), { recursive: true });
  await offstage.database.pool.query("delete from checkpoint where session_id = $1", [id]);
}

test("a session that begins anew after the target moved on has only its own changes, and none is none", async () => {
  const { name, url } = await repository();
  const first = await run(url, "say nothing to do");
  await world.forge.commit("acme", name, "main", { "theirs.txt": "theirs\n" });
  await forget(first);
  expect(await followUp(first, "say still nothing")).toMatchObject({ failure: null, pullRequests: [] });
  expect(await world.forge.pullRequests("acme", name)).toEqual([]);
  expect((await followUp(first, "shell echo b > b.txt")).pullRequests).toHaveLength(1);
  const patch = (await client.session.diff(first.id)).repositories[0]?.patch ?? "";
  expect(patch).toContain("b.txt");
  expect(patch).not.toContain("theirs.txt");
});

test("what a session without a repository had made is made again if its folder is lost and nothing else has it", async () => {
  const other = await createWorld(script);
  const settings = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_CHECKPOINT_MB: "0" };
  try {
    const before = await startInProcess(other, settings);
    const { id } = await before.client.session.create({ prompt: "write b.txt: alpha" });
    await before.client.session.message(id, { message: "shell sleep 3; cat b.txt" });
    await waitFor(async () => {
      const { events } = await before.client.session.events(id, { limit: 1_000 });
      return events.some((event) => event.type === "agent.tool" && JSON.stringify(event.data).includes("sleep 3"));
    }, "the second message is answered");
    await before.offstage.stop();
    await rm(join(other.data, "sessions"), { recursive: true });
    const after = await startInProcess(other, settings);
    expect(await untilOver(after.client, id)).toMatchObject({ status: "completed", failure: null });
    const { events } = await after.client.session.events(id, { limit: 1_000 });
    const shown = events.filter((event) => event.type === "agent.tool").map(({ data }) => JSON.stringify(data));
    expect(shown.findLast((data) => data.includes("sleep 3"))).toContain("alpha");
    await after.offstage.stop();
  } finally {
    await other.close();
  }
});

test("a session whose target was rewritten since goes on, on a machine that never had what it began with", async () => {
  const { url } = await repository();
  const first = await run(url, "say nothing to do");
  await inOtherClone(world, url, "git commit -q --amend -m anew && git push -q --force origin main");
  await forget(first);
  await rm(join(world.data, "mirrors"), { recursive: true });
  expect(await followUp(first, "shell echo b > b.txt")).toMatchObject({ status: "completed", failure: null });
});

test("a follow-up goes to the pull request that is open, also if the default branch is another by now", async () => {
  const { name, url } = await repository();
  const first = await run(url, "shell echo b > b.txt");
  await world.forge.commit("acme", name, "develop", { "d.txt": "d\n" });
  await promisify(execFile)("git", ["symbolic-ref", "HEAD", "refs/heads/develop"], {
    cwd: world.forge.pathOf("acme", name),
  });
  await forget(first);
  expect(await followUp(first, "shell echo c > c.txt")).toMatchObject({ failure: null, pullRequests: [{ number: 1 }] });
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("a setup that fails before the work of a checkpoint is back leaves the diff alone, and a retry goes on from the work", async () => {
  const { url } = await repository();
  const first = await run(url, "write b.txt: alpha");
  await rm(join(world.data, "sessions", first.id), { recursive: true });
  const environment = `/repository/${first.repositories[0]?.id}/environment`;
  await callApi(offstage.url, environment, { setupScript: "exit 1" });
  expect(await followUp(first, "write c.txt: gamma")).toMatchObject({ failure: { code: "setup_failed" } });
  expect((await client.session.diff(first.id)).repositories[0]?.patch).toContain("+alpha");
  await callApi(offstage.url, environment, { setupScript: "true" });
  await client.session.queue(first.id);
  expect(await untilOver(client, first.id)).toMatchObject({ status: "completed", failure: null });
  expect(await filesOf(url, first)).toEqual(["a.txt", "b.txt", "c.txt"]);
});

test.each(["a..b", "yarn.lock"])("a repository named %s is worked on", async (name) => {
  const { url } = await repository(name);
  expect(await run(url, "shell echo b > b.txt")).toMatchObject({ status: "completed", failure: null });
});

test("a retry after the push was refused pushes what was made, and has nothing made again", async () => {
  const { name, url } = await repository();
  await world.forge.failNext({ kind: "rejectPush", owner: "acme", name, message: "no" });
  const first = await run(url, "shell echo b >> b.txt");
  expect(first.failure?.code).toBe("push_rejected");
  await rm(join(world.forge.pathOf("acme", name), "hooks/pre-receive"));
  await client.session.queue(first.id);
  const second = await untilOver(client, first.id);
  expect(second.failure).toBe(null);
  expect(await inOtherClone(world, url, `git show 'origin/${first.branchName}:b.txt'`)).toBe("b");
  expect(second.summary).toBe(first.summary);
  expect((await world.forge.pullRequests("acme", name))[0]?.body).toContain("Did as asked");
});
