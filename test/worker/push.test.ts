import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { mustGit } from "../../src/worker/git/git.ts";
import { ensureMirror, fetchBranch, lookUpHeads, pushBranch, type Mirror } from "../../src/worker/git/mirror.ts";
import { startForge, type TestForge } from "../forge/server.ts";

const { signal } = new AbortController();
const author = { name: "Offstage", email: "offstage@localhost" };
let forge: TestForge;
let folder: string;
let mirror: Mirror;
let base: string;

beforeEach(async () => {
  forge = await startForge();
  folder = await mkdtemp(join(tmpdir(), "offstage-push-"));
  const { url } = await forge.createRepository("acme", "late", { "README.md": "# Before\n" });
  const credentials = () => Promise.resolve({ username: "token", password: forge.token });
  mirror = { path: join(folder, "mirror.git"), url, local: false, named: true, credentials };
  await ensureMirror(mirror, signal);
  const heads = await lookUpHeads(mirror, { targetBranch: null, branch: "work" }, signal);
  base = heads.targetSha;
  await fetchBranch(mirror, { branch: "main", sha: base, into: "refs/offstage/test/target" }, () => undefined, signal);
});

afterEach(async () => {
  await forge.close();
  await rm(folder, { recursive: true, force: true });
});

const git = (...parameters: string[]): Promise<string> => mustGit(parameters, { cwd: mirror.path, signal });

/** A commit on the base with one file more, at a time of its own, so that no two are the same. */
async function commit(content: string, message: string): Promise<string> {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
  const file = join(folder, "file");
  await writeFile(file, content);
  const blob = await git("hash-object", "-w", file);
  const listed = await git("ls-tree", base);
  const tree = await mustGit(["mktree"], {
    cwd: mirror.path,
    signal,
    input: Readable.from([`${listed}\n100644 blob ${blob}\twork.txt\n`]),
  });
  return mustGit([...identity, "commit-tree", tree, "-p", base, "-m", message], { cwd: mirror.path, signal });
}

const push = (sha: string, own: readonly string[], configuredBranch: string | null = null): Promise<string> =>
  pushBranch(mirror, { branch: "work", configuredBranch, sha, own: new Set(own), author, message: "Go on" }, signal);
const remote = (parameter: string): Promise<string> =>
  mustGit(["rev-parse", parameter], { cwd: forge.pathOf("acme", "late"), signal });

test("what a worker that was cut off pushed late is kept, and the work of its successor comes on top", async () => {
  const late = await commit("of the first", "first");
  const mine = await commit("of the second", "second");
  expect(await push(late, [])).toBe(late);
  const reached = await push(mine, [late, mine]);
  expect(await remote("work")).toBe(reached);
  expect(await remote("work^")).toBe(late);
  expect(await remote("work^{tree}")).toBe(await git("rev-parse", `${mine}^{tree}`));
});

test("what was pushed late and is the same is left as it is", async () => {
  const late = await commit("the same", "first");
  const mine = await commit("the same", "second");
  await push(late, []);
  expect(await push(mine, [late])).toBe(late);
  expect(await remote("work")).toBe(late);
});

test("a commit of somebody else's on the branch is never built over", async () => {
  const theirs = await commit("of a person", "theirs");
  const mine = await commit("of the agent", "mine");
  await push(theirs, []);
  await expect(push(mine, [mine])).rejects.toMatchObject({ code: "branch_diverged" });
  expect(await remote("work")).toBe(theirs);
});

test("a branch that became the repository's own since the session began is not pushed to", async () => {
  const mine = await commit("of the agent", "mine");
  await push(await commit("before", "before"), []);
  const before = await remote("work");
  await expect(push(mine, [before], "work")).rejects.toMatchObject({ code: "branch_protected" });
  await mustGit(["symbolic-ref", "HEAD", "refs/heads/work"], { cwd: forge.pathOf("acme", "late"), signal });
  await expect(push(mine, [before])).rejects.toMatchObject({ code: "branch_protected" });
  expect(await remote("work")).toBe(before);
  await mustGit(["symbolic-ref", "HEAD", "refs/heads/main"], { cwd: forge.pathOf("acme", "late"), signal });
  expect(await push(mine, [before])).toBe(await remote("work"));
});
