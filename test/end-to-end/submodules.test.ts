import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { removeFolder } from "../../src/worker/disk/remove-folder.ts";
import { callApi } from "../call.ts";
import { seedRepository } from "../forge/seed-repository.ts";
import { inOtherClone } from "../other-clone.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { recordedScript } from "./script.ts";

/** Repositories with submodules, from the request to the pull request. */
let world: World;
let offstage: Offstage;
let client: Client;
/** A server that only .gitmodules names, and its requests. */
let stranger: Server;
let strangerUrl: string;
const asked: { path: string; authorization: string | undefined }[] = [];
const prompts: string[] = [];

beforeAll(async () => {
  world = await createWorld(recordedScript(prompts));
  stranger = createServer((request, response) => {
    asked.push({ path: request.url ?? "", authorization: request.headers.authorization });
    response.writeHead(401, { "WWW-Authenticate": 'Basic realm="give me"' }).end();
  });
  await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
  strangerUrl = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  const forges = [
    { kind: "github", webUrl: world.forge.url, apiUrl: world.forge.apiUrl, token: world.forge.token },
    { kind: "git", webUrl: strangerUrl, token: "the-strangers-own-token" },
  ];
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_FORGES: JSON.stringify(forges),
  }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
  stranger?.close();
});

/** Makes a repository by commands in an empty one. */
async function repository(owner: string, name: string, commands: string) {
  const { url } = await world.forge.createRepository(owner, name, {});
  const path = world.forge.pathOf(owner, name);
  await seedRepository(path, { commands });
  const { stdout } = await promisify(execFile)("git", ["-C", path, "rev-parse", "main"]);
  return { url, path, sha: stdout.trim() };
}

/** Commands that record a submodule, which need not exist. */
function submodule(path: string, url: string, sha: string, name = path): string {
  return `git config -f .gitmodules 'submodule.${name}.path' '${path}'; git config -f .gitmodules 'submodule.${name}.url' '${url}'; mkdir -p '${path}'; git update-index --add --cacheinfo '160000,${sha},${path}'; git add .gitmodules; git commit -qm 'Add ${path}'`;
}

async function run(url: string, prompt: string) {
  const { id } = await client.session.create({ prompt, repositories: [url] });
  const session = await untilOver(client, id);
  const notices = await noticesOf(client, id);
  return { session, notices: notices.filter((text) => /submodules/iu.test(text)) };
}

const fileOf = async (id: string, path: string): Promise<unknown> =>
  (await callApi(offstage.url, `/session/${id}/file/read?path=${encodeURIComponent(path)}`)).text;

test("git takes no file of a fresh clone or its submodules for one that may have changed", async () => {
  const library = await repository("acme", "taken-in", "echo one > library.txt");
  const { url } = await repository(
    "acme",
    "fresh",
    ["echo app > app.txt; git add app.txt", submodule("library", "../taken-in", library.sha)].join("; "),
  );
  // git-diff-files(1) compares with the index alone, and writes none: what it names, git would have to read.
  const named = "{ git diff-files --name-only --ignore-submodules; git -C library diff-files --name-only; } > seen.txt";
  const control = "touch -d 2001-01-01 app.txt; git diff-files --name-only app.txt >> seen.txt";
  const { session } = await run(url, `shell ${named}; ${control}`);
  expect(session).toMatchObject({ status: "completed", failure: null });
  const seen = await inOtherClone(world, url, `git show origin/${session.branchName}:seen.txt`);
  expect(seen).toBe("app.txt");
});

test("submodules of every spelling are there at their recorded commits, and those in them", async () => {
  const deep = await repository("acme", "deep", "echo deep > deep.txt");
  const library = await repository(
    "acme",
    "library",
    `echo one > library.txt; git add library.txt; ${submodule("inner/deep", "../deep", deep.sha)}`,
  );
  const recorded = library.sha;
  await world.forge.commit("acme", "library", "main", { "library.txt": "two\n" });
  const host = new URL(world.forge.url).hostname;
  const { url } = await repository(
    "acme",
    "app",
    [
      "echo app > app.txt; git add app.txt",
      submodule("libs/absolute", `${world.forge.url}/acme/library.git`, recorded),
      submodule("libs/relative", "../library", recorded, "a name"),
      submodule("a space", "./../library/", recorded),
      submodule("by-ssh", `git@${host}:acme/deep`, deep.sha),
    ].join("; "),
  );
  const show = `cat libs/absolute/library.txt libs/relative/library.txt "a space/library.txt" by-ssh/deep.txt libs/*/inner/deep/deep.txt > seen.txt; git submodule status | tr -d ' ' | cut -c1 | sort -u >> seen.txt; git status --porcelain | grep -v seen.txt >> seen.txt; true`;
  const { session, notices } = await run(url, `shell ${show}`);
  expect(session).toMatchObject({ status: "completed", failure: null });
  expect(notices).toEqual([]);
  expect(session.pullRequests).toHaveLength(1);
  expect(
    (await inOtherClone(world, url, `git show origin/${session.branchName}:seen.txt`)).split("\n").slice(0, 6),
  ).toEqual(["one", "one", "one", "deep", "deep", "deep"]);
  const changed = await inOtherClone(world, url, `git diff --name-only origin/main origin/${session.branchName}`);
  expect(changed).toBe("seen.txt");
  expect(prompts.some((text) => text.includes("libs/relative") && text.includes("can't be pushed"))).toBe(true);
  // Whoever looks at the session's files finds theirs, too.
  expect(await fileOf(session.id, "app/libs/relative/inner/deep/deep.txt")).toBe("deep\n");
  expect(await fileOf(session.id, "app/a space/library.txt")).toBe("one\n");
});

test("what is changed inside a submodule stays out of the pull request, which is said, and a pushed commit is kept", async () => {
  const library = await repository("acme", "library-2", "echo one > library.txt");
  const { url } = await repository(
    "acme",
    "app-2",
    [
      "echo 1 > app.txt; git add app.txt",
      ...["a", "b", "c", "d"].map((path) => submodule(path, "../library-2", library.sha)),
    ].join("; "),
  );
  await world.forge.commit("acme", "library-2", "main", { "library.txt": "newer\n" });
  const newer = (await promisify(execFile)("git", ["-C", library.path, "rev-parse", "main"])).stdout.trim();
  const commit = "git -c user.name=A -c user.email=a@example.com commit -qam Change";
  const work = `(cd a && echo two > library.txt && ${commit}) && git add a && ${commit} && (cd b && echo two > library.txt) && git update-index --cacheinfo 160000,${newer},c && echo 2 > app.txt`;
  const { session, notices } = await run(url, `shell ${work}`);
  expect(session).toMatchObject({ status: "completed", failure: null });
  expect(notices).toHaveLength(1);
  expect(notices[0]).toMatch(/submodules of acme\/app-2 can't be pushed.*: a \(.*library-2\), b \(.*library-2\)\. /u);
  const tree = await inOtherClone(world, url, `git ls-tree origin/${session.branchName} a b c d | cut -d' ' -f3`);
  expect(tree.split("\n").map((line) => line.split("\t")[0])).toEqual([library.sha, library.sha, newer, library.sha]);
  // Nothing but a submodule: no commit that says nothing, and no pull request.
  const alone = await run(url, `shell (cd a && echo three > library.txt && ${commit}) && git add a && ${commit}`);
  expect(alone.session).toMatchObject({ status: "completed", pullRequests: [] });
  expect(alone.notices[0]).toContain("can't be pushed");
});

test("what is recorded of submodules between two turns, by the agent or by others, is not taken back by the next", async () => {
  const library = await repository("acme", "library-3", "echo one > library.txt");
  const { url } = await repository(
    "acme",
    "app-3",
    [
      "echo 1 > app.txt; git add app.txt",
      ...["mine", "theirs", "busy", "gone", "moved"].map((path) => submodule(path, "../library-3", library.sha)),
    ].join("; "),
  );
  await world.forge.commit("acme", "library-3", "main", { "library.txt": "newer\n" });
  const newer = (await promisify(execFile)("git", ["-C", library.path, "rev-parse", "main"])).stdout.trim();
  const own =
    "cd busy && echo own > own.txt && git add own.txt && git -c user.name=A -c user.email=a@example.com commit -qm own && cd ..";
  const prompt = `shell git update-index --cacheinfo 160000,${newer},mine && echo 2 > app.txt && echo built > theirs/built && echo built >> .git/modules-ignore && git -C theirs config core.excludesFile "$PWD/.git/modules-ignore" && ${own}`;
  const { id } = await client.session.create({ prompt, repositories: [url], branchName: "work" });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  const change = `git update-index --cacheinfo 160000,${newer},theirs && git update-index --cacheinfo 160000,${newer},busy && git rm -q gone && git update-index --force-remove moved && git update-index --add --cacheinfo 160000,${library.sha},elsewhere && git config -f .gitmodules submodule.new.path new && git config -f .gitmodules submodule.new.url ../library-3 && git add .gitmodules && git update-index --add --cacheinfo 160000,${newer},new`;
  await inOtherClone(
    world,
    url,
    `git checkout -q work && ${change} && git commit -qm 'A reviewer changes submodules' && git push -q origin HEAD:work`,
  );
  await client.session.message(id, {
    message:
      "shell git add -A && echo 3 > app.txt && cat theirs/library.txt theirs/built new/library.txt mine/library.txt busy/library.txt busy/own.txt > seen.txt && git -C theirs status --porcelain >> seen.txt && git status --porcelain theirs new >> seen.txt",
  });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  const tree = await inOtherClone(world, url, "git ls-tree origin/work");
  const links = [...tree.matchAll(/^160000 commit ([0-9a-f]+)\t(.*)$/gmu)].map(([, sha, path]) => [path, sha]);
  expect(Object.fromEntries(links)).toEqual({
    mine: newer,
    theirs: newer,
    busy: newer,
    new: newer,
    elsewhere: library.sha,
  });
  expect(await inOtherClone(world, url, "git diff --name-only origin/work~1 origin/work")).toBe("app.txt\nseen.txt");
  expect((await inOtherClone(world, url, "git show origin/work:seen.txt")).split("\n")).toEqual([
    "newer",
    "built",
    "newer",
    "one",
    "one",
    "own",
  ]);
  expect(prompts.at(-1)).toMatch(/recorded at another commit.*: "busy"\./su);
  expect(prompts.at(-1)).toMatch(/are new, and their folders are empty in this session: "elsewhere"/su);
  expect(prompts.at(-1)).toMatch(/at the commits that others recorded by now: "theirs", "new"/su);
  expect(await noticesOf(client, id)).toContainEqual(
    expect.stringMatching(
      /recorded at another commit.*: busy \(something was changed in its folder\); others are new, and their folders are empty: elsewhere \(its address is not in \.gitmodules\)\./su,
    ),
  );
});

test("what others recorded of submodules is there after the session's folders were lost, too", async () => {
  const library = await repository("acme", "library-6", "echo one > library.txt");
  const { url } = await repository(
    "acme",
    "app-6",
    ["echo 1 > app.txt; git add app.txt", submodule("library", "../library-6", library.sha)].join("; "),
  );
  await world.forge.commit("acme", "library-6", "main", { "library.txt": "newer\n" });
  const newer = (await promisify(execFile)("git", ["-C", library.path, "rev-parse", "main"])).stdout.trim();
  const { id } = await client.session.create({
    prompt: "shell echo 2 > app.txt",
    repositories: [url],
    branchName: "work",
  });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  await inOtherClone(
    world,
    url,
    `git checkout -q work && git update-index --cacheinfo 160000,${newer},library && git commit -qm Newer && git push -q origin HEAD:work`,
  );
  const next = async (message: string): Promise<void> => {
    await client.session.message(id, { message });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  };
  await next("shell cat library/library.txt > seen.txt");
  expect(await fileOf(id, "app-6/library/library.txt")).toBe("newer\n");
  // As for a worker on another machine.
  await removeFolder(join(world.data, "sessions", id));
  await next("shell cat library/library.txt >> seen.txt");
  expect(await inOtherClone(world, url, "git show origin/work:seen.txt")).toBe("newer\nnewer");
  expect(await inOtherClone(world, url, "git rev-parse origin/work:library")).toBe(newer);
  expect((await noticesOf(client, id)).filter((text) => text.includes("submodules"))).toEqual([]);
});

test("a credential goes to no server, and to no owner's repository, that .gitmodules alone names", async () => {
  const secret = await repository("other", "private", "echo private > private.txt");
  const connected = await repository("other", "connected", "echo connected > connected.txt");
  await client.session.create({ prompt: "say hello", repositories: [connected.url], queueRightAway: false });
  const gone = "1234567890123456789012345678901234567890";
  const { url } = await repository(
    "acme",
    "app-3",
    [
      "echo app > app.txt; git add app.txt",
      submodule("connected", connected.url, connected.sha),
      submodule("private", secret.url, secret.sha),
      submodule("climbing", "../../other/private", secret.sha),
      submodule("stranger", `${strangerUrl}/acme/library`, gone),
      submodule("file", "file:///etc", gone),
      submodule("path", secret.path, secret.sha),
      submodule("above", "../../../../evil.example/x", gone),
      submodule("metadata", "http://169.254.169.254/latest", gone),
    ].join("; "),
  );
  // A copy that a trusted session fetched must not open it either.
  const warm = await repository(
    "other",
    "warm",
    `echo w > w.txt; git add w.txt; ${submodule("private", "../private", secret.sha)}`,
  );
  expect((await run(warm.url, "shell cat private/private.txt > seen.txt")).notices).toEqual([]);
  asked.length = 0;
  const { session, notices } = await run(
    url,
    "shell find . -name '*.txt' -not -path './.git/*' -not -name seen.txt | sort > seen.txt",
  );
  expect(session).toMatchObject({ status: "completed", failure: null });
  expect(await inOtherClone(world, url, `git show origin/${session.branchName}:seen.txt`)).toBe(
    ["./app.txt", "./connected/connected.txt"].join("\n"),
  );
  expect(notices).toHaveLength(1);
  expect(notices[0]).toContain("connect it as a repository");
  expect(notices[0]).toContain("; and 2 more");
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
  expect(prompts.some((text) => text.includes('"stranger"') && text.includes("folders are empty"))).toBe(true);
});

test("addresses and names that make git run programs, or write elsewhere, do neither", async () => {
  const library = await repository("acme", "library-4", "echo one > four.txt");
  const mark = join(world.data, "ran");
  const included = join(world.data, "included");
  await writeFile(included, '[submodule "named"]\n\turl = /from/the/included/file\n');
  const { url } = await repository(
    "acme",
    "app-4",
    [
      "echo app > app.txt; git add app.txt",
      submodule("ext", `ext::sh -c "touch ${mark}"`, library.sha),
      submodule("dash", `--upload-pack=touch ${mark}`, library.sha),
      submodule("ssh", `ssh://-oProxyCommand=touch%20${mark}/x`, library.sha),
      submodule("named", "../library-4", library.sha, "../../../hooks"),
      // git asks for a submodule's commit on the remote by its name alone.
      submodule("unpushed", "../library-4", "1234567890123456789012345678901234567890"),
      `git config -f .gitmodules include.path ${included}; git add .gitmodules; git commit -qm Include`,
    ].join("; "),
  );
  const { session, notices } = await run(url, "shell ls named ; ls .git/modules .git/hooks");
  expect(session).toMatchObject({ status: "completed", failure: null });
  expect(notices[0]).toMatch(
    /dash: its address .*ext: its address .*ssh: its address .*unpushed: .*does not have the commit/u,
  );
  expect(notices[0]).not.toContain("named: ");
  expect(existsSync(mark)).toBe(false);
  expect(prompts.some((text) => text.includes("four.txt"))).toBe(true);
});

test("a submodule's files come back in a follow-up, and in a setup script's clone", async () => {
  const library = await repository("acme", "library-5", "echo one > library.txt");
  const { url } = await repository(
    "acme",
    "app-5",
    `echo 1 > app.txt; git add .; ${submodule("library", "../library-5", library.sha)}`,
  );
  const draft = await client.session.create({
    prompt: "shell cat library/built built > seen.txt",
    repositories: [url],
    queueRightAway: false,
  });
  const [connected] = (await client.session.get(draft.id)).repositories;
  await callApi(offstage.url, `/repository/${connected?.id}/environment`, {
    setupScript: "cp library/library.txt library/built && cp library/library.txt built",
  });
  await client.session.queue(draft.id);
  expect(await untilOver(client, draft.id)).toMatchObject({ status: "completed", failure: null });
  await client.session.message(draft.id, { message: "shell cat library/library.txt >> seen.txt" });
  const session = await untilOver(client, draft.id);
  expect(session).toMatchObject({ status: "completed", failure: null });
  expect(await inOtherClone(world, url, `git show origin/${session.branchName}:seen.txt`)).toBe("one\none\none");
  expect((await noticesOf(client, draft.id)).filter((text) => text.includes("submodules"))).toEqual([]);
});
