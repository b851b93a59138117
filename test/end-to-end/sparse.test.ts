import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { lfsPath, lfsStore } from "../../src/worker/git/lfs/store.ts";
import { mirrorPath } from "../../src/worker/git/mirrors/mirror.ts";
import { callApi } from "../call.ts";
import { seedRepository } from "../forge/seed-repository.ts";
import { inOtherClone } from "../other-clone.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { recordedScript } from "./script.ts";

/** Repositories of which clones have some folders, from the request to the pull request. */
let world: World;
let offstage: Offstage;
let client: Client;
const prompts: string[] = [];
const hasLfs = spawnSync("git", ["lfs", "version"]).status === 0;

beforeAll(async () => {
  world = await createWorld(recordedScript(prompts));
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

const names = ["README.md", "docs/a.md", "services/read.me", "services/api/main.c", "services/web/index.html"];
const files = Object.fromEntries(names.map((name) => [name, `${name}\n`]));

/** A repository whose environment names the folders. @param commands more of what is in it */
async function repository(name: string, sparse: readonly string[], commands?: string) {
  const { url } = await world.forge.createRepository("acme", name, commands === undefined ? files : {});
  if (commands !== undefined) await seedRepository(world.forge.pathOf("acme", name), { commands });
  const { id } = await callApi(offstage.url, "/repository/create", { url });
  const environment = `/repository/${id}/environment`;
  expect(await callApi(offstage.url, environment, { sparse })).toMatchObject({ sparse });
  return { url, environment };
}

async function run(url: string, prompt: string) {
  const { id } = await client.session.create({ prompt, repositories: [url] });
  const session = await untilOver(client, id);
  expect(session).toMatchObject({ status: "completed", failure: null });
  return session;
}

const changes = (url: string, branch: string): Promise<string> =>
  inOtherClone(world, url, `git diff --name-status --no-renames origin/main origin/${branch}`);

test("a session has the folders of its repository's environment, and its pull request deletes nothing else", async () => {
  const { url } = await repository("some", ["services/api", "gone"]);
  // The file is there before `find` starts: a pipeline's redirection does not wait for its first command.
  const look = "touch services/api/seen; find . -name .git -prune -o -type f -print | sort > services/api/seen";
  const session = await run(url, `shell ${look}; git grep --cached -l html >> services/api/seen`);
  expect(session.pullRequests).toHaveLength(1);
  expect(await changes(url, session.branchName)).toBe("A\tservices/api/seen");
  expect(await inOtherClone(world, url, `git show origin/${session.branchName}:services/api/seen`)).toBe(
    [
      "./README.md",
      "./services/api/main.c",
      "./services/api/seen",
      "./services/read.me",
      "services/web/index.html",
    ].join("\n"),
  );
  const { repositories } = await client.session.diff(session.id);
  expect(repositories[0]?.patch).toContain("services/api/seen");
  expect(repositories[0]?.patch).not.toContain("deleted file");
  expect(await noticesOf(client, session.id)).toEqual([
    expect.stringMatching(/acme\/some has only these folders, .*: services\/api, gone\. .* Not in the commit: gone\./u),
  ]);
  expect(prompts.some((text) => text.includes("sparse-checkout add"))).toBe(true);
});

test("the agent checks out more by itself, and a follow-up and others' commits go on from there", async () => {
  const { url } = await repository("more", ["docs"]);
  const session = await run(
    url,
    "shell git sparse-checkout add services/api && cat services/api/main.c > docs/seen && rm services/api/main.c && git log -p --all -- services/web > docs/log",
  );
  const branch = session.branchName;
  expect((await changes(url, branch)).split("\n")).toEqual(["A\tdocs/log", "A\tdocs/seen", "D\tservices/api/main.c"]);
  expect(await inOtherClone(world, url, `git show origin/${branch}:docs/log`)).toContain("+services/web/index.html");
  await world.forge.commit("acme", "more", branch, {
    "services/web/theirs.html": "theirs\n",
    "docs/theirs": "theirs\n",
  });
  const disable = "git sparse-checkout disable && cat services/web/theirs.html docs/theirs > docs/both";
  await client.session.message(session.id, { message: `shell ls services/web 2> docs/none; ${disable}` });
  expect(await untilOver(client, session.id)).toMatchObject({ status: "completed", failure: null });
  expect((await changes(url, branch)).split("\n")).toEqual([
    "A\tdocs/both",
    "A\tdocs/log",
    "A\tdocs/none",
    "A\tdocs/seen",
    "A\tdocs/theirs",
    "D\tservices/api/main.c",
    "A\tservices/web/theirs.html",
  ]);
  expect(await inOtherClone(world, url, `git show origin/${branch}:docs/both`)).toBe("theirs\ntheirs");
});

test("submodules outside of the folders are left out, and a setup is reused only for the same folders", async () => {
  const link = (path: string): string =>
    `git config -f .gitmodules submodule.${path}.path ${path}; git config -f .gitmodules submodule.${path}.url ../library; mkdir -p ${path}; git update-index --add --cacheinfo "160000,$sha,${path}"`;
  await world.forge.createRepository("acme", "library", { "library.txt": "one\n" });
  const library = world.forge.pathOf("acme", "library");
  const commands = `mkdir docs; echo a > docs/a.md; git add docs; sha=$(git -C ${library} rev-parse main); ${link("docs/in")}; ${link("services/out")}; git add .gitmodules; git commit -qm Link`;
  const { url, environment } = await repository("linked", ["docs"], commands);
  await callApi(offstage.url, environment, { setupScript: "ls . > docs/set-up" });
  const session = await run(url, "shell ls docs/in services/out > docs/seen 2> docs/missing; cp docs/set-up docs/made");
  expect(await inOtherClone(world, url, `git show origin/${session.branchName}:docs/seen`)).toBe(
    "docs/in:\nlibrary.txt",
  );
  expect((await changes(url, session.branchName)).split("\n")).toEqual([
    "A\tdocs/made",
    "A\tdocs/missing",
    "A\tdocs/seen",
  ]);
  expect(await noticesOf(client, session.id)).toEqual([expect.stringContaining("only these folders")]);
  const reused = async (id: string): Promise<boolean> =>
    (await client.session.events(id, { limit: 1_000 })).events.some(
      (event) => event.type === "setup.output" && event.data.text.includes("Reused"),
    );
  expect(await reused((await run(url, "say hello")).id)).toBe(true);
  await callApi(offstage.url, environment, { sparse: ["docs", "services"] });
  const other = await run(url, "shell ls services/out > docs/seen; cp docs/set-up docs/made");
  expect(await reused(other.id)).toBe(false);
  expect(await inOtherClone(world, url, `git show origin/${other.branchName}:docs/seen`)).toBe("library.txt");
});

test.runIf(hasLfs)("of files in LFS only the folders' contents are downloaded", async () => {
  const contents = { "docs/in.bin": "x".repeat(2_000), "services/out.bin": "y".repeat(2_000), "root.bin": "z" };
  const oidOf = (content: string): string => createHash("sha256").update(content).digest("hex");
  const pointers = Object.entries(contents).map(
    ([path, content]) =>
      `printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:${oidOf(content)}\\nsize ${content.length}\\n' > ${path}; git add ${path}`,
  );
  const attributes = "printf '*.bin filter=lfs diff=lfs merge=lfs -text\\n' > .gitattributes; git add .gitattributes";
  const { url } = await repository(
    "binary",
    ["docs"],
    `mkdir docs services; ${[attributes, ...pointers].join("; ")}; git commit -qm LFS`,
  );
  for (const content of Object.values(contents)) {
    const path = world.forge.lfs.pathOf("acme", "binary", oidOf(content));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
  const session = await run(url, "shell wc -c docs/in.bin root.bin > docs/seen; printf new > docs/new.bin");
  expect(await inOtherClone(world, url, `git show origin/${session.branchName}:docs/seen`)).toMatch(
    /^\s*2000 docs\/in.bin\n\s*1 root.bin/u,
  );
  expect(await changes(url, session.branchName)).toBe("A\tdocs/new.bin\nA\tdocs/seen");
  const store = lfsStore(mirrorPath(join(world.data, "mirrors"), url));
  const there = Object.values(contents).map((content) => existsSync(lfsPath(store, oidOf(content))));
  expect(there).toEqual([true, false, true]);
});

test.each(["/docs", "docs/", "a//b", "../x", ".", "", "docs\nlib", ".git/hooks", "a/.GIT"])(
  "the folder %j is refused by the name of the field",
  async (folder) => {
    const { id } = await callApi(offstage.url, "/repository/create", { url: `${world.forge.url}/acme/bad` });
    const refused = callApi(offstage.url, `/repository/${id}/environment`, { sparse: ["docs", folder] });
    await expect(refused).rejects.toThrow(/sparse/u);
  },
);
