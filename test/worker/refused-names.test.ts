import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeClones } from "../../src/worker/clones/clones.ts";
import { mustGit } from "../../src/worker/git/git.ts";
import type { RemoteRepository } from "../../src/worker/git/remote-repository.ts";
import { cloneServicesIn, cloneSourceAt } from "./clone-source.ts";

/** Commits that other programs than git made, or git elsewhere, with names under which no file can be here. */
let folder: string;
const { signal } = new AbortController();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-names-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** A repository with one commit, which has a file of this name in the folder `inner`, and one of each submodule. */
async function repository(
  called: string,
  file: string,
  submodules: Readonly<Record<string, string>> = {},
  [mode, content] = ["100644", "content\n"],
) {
  const url = join(folder, called);
  await mkdir(url);
  const options = { cwd: url, signal, local: true };
  const take =
    (...parameters: string[]) =>
    (input: string) =>
      mustGit(parameters, { ...options, input: Readable.from([input]) });
  const [blob, tree] = [take("hash-object", "-w", "--stdin"), take("mktree", "--missing")];
  await mustGit(["init", "--quiet", "--initial-branch", "main"], options);
  const inner = await tree(`${mode} blob ${await blob(content)}\t${file}\n`);
  const settings = Object.keys(submodules).map((path) => `[submodule "${path}"]\npath = ${path}\nurl = ../${path}\n`);
  const root = [
    `100644 blob ${await blob(settings.join(""))}\t.gitmodules\n`,
    `040000 tree ${inner}\tinner\n`,
    ...Object.entries(submodules).map(([path, sha]) => `160000 commit ${sha}\t${path}\n`),
  ];
  const who = ["-c", "user.name=A", "-c", "user.email=a@example"];
  const commit = await mustGit([...who, "commit-tree", await tree(root.join("")), "-m", "Names"], options);
  await mustGit(["update-ref", "refs/heads/main", commit], options);
  return { url, commit };
}

const clone = (url: string, remote: Partial<RemoteRepository> = {}) => {
  const source = cloneSourceAt(url);
  const sources = [{ ...source, remote: { ...source.remote, ...remote } }];
  const request = { sessionId: crypto.randomUUID(), sources, progress: () => undefined, signal };
  return makeClones(cloneServicesIn(join(folder, "data")), request, null);
};

test.each([
  ["like git's folder in short", "git~1"],
  ["like git's folder with a space", ".git "],
  ["like git's folder in capitals", ".GIT"],
  ["of 300 bytes", "g".repeat(300)],
])("a commit with a name %s is refused for good, by its path", async (_, name) => {
  const { url } = await repository("app", name);
  const shown = `"inner/${name}`.slice(0, 200);
  await expect(clone(url)).rejects.toMatchObject({
    failure: { code: "repository_unreachable", retryable: false, reason: expect.stringContaining(shown) },
  });
});

test.each([
  ["nothing", ""],
  ["5,000 bytes", "x".repeat(5_000)],
])("a symbolic link to %s is refused for good, by its path", async (_, target) => {
  const { url } = await repository("app", "link", {}, ["120000", target]);
  await expect(clone(url)).rejects.toMatchObject({
    failure: { code: "repository_unreachable", retryable: false, reason: expect.stringContaining('"inner/link"') },
  });
});

test("a submodule with such a name is left empty, and says why", async () => {
  const { commit } = await repository("library", "git~1");
  const { url } = await repository("app", "fine.txt", { library: commit });
  const submodule: RemoteRepository["submodule"] = (address) =>
    Promise.resolve({ url: address, named: true, credentials: () => Promise.resolve(null), hint: "" });
  const { clones } = await clone(url, { submodule });
  expect(clones[0]?.submodules).toMatchObject([{ path: "library", problem: expect.stringContaining("inner/git~1") }]);
  expect(await readdir(join(clones[0]?.folder ?? "", "library"))).toEqual([]);
});
