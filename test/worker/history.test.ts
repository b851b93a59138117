import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readHistory } from "../../src/worker/commit-contents.ts";
import { mustGit } from "../../src/worker/git.ts";

let folder: string;
const { signal } = new AbortController();
const identity = ["-c", "user.name=A", "-c", "user.email=a@example"];
const git = (...parameters: string[]): Promise<string> =>
  mustGit([...identity, ...parameters], { cwd: folder, signal, local: true });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-history-"));
  await git("init", "--quiet", "--initial-branch", "main");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function commit(name: string): Promise<string> {
  await writeFile(join(folder, name), name);
  await git("add", "--all");
  await git("commit", "--quiet", "--message", name);
  return git("rev-parse", "HEAD");
}

test("what would be pushed is read whole: also what a merge alone brought in", async () => {
  const baseSha = await commit("base");
  await git("checkout", "--quiet", "-b", "side");
  await commit("side");
  await git("checkout", "--quiet", "main");
  await commit("main");
  await git("merge", "--quiet", "--no-commit", "--no-ff", "side");
  await writeFile(join(folder, "merged.env"), "KEY=only-in-the-merge\n");
  await git("add", "--all");
  await git("commit", "--quiet", "--message", "Merge");
  const start = { baseSha, headSha: baseSha, targetBranch: "main" };
  const history = await readHistory(folder, start, await git("rev-parse", "HEAD"), signal);
  for (const part of ["+main", "+side", "KEY=only-in-the-merge"]) expect(history).toContain(part);
});

test("a few bytes that stand for endless folders take no more memory than they may", async () => {
  const baseSha = await commit("base");
  const entry = async (lines: (index: number) => string): Promise<string> =>
    mustGit(["mktree"], {
      cwd: folder,
      signal,
      input: Readable.from([Array.from({ length: 10 }, (_, index) => `${lines(index)}\n`).join("")]),
    });
  const blob = await git("rev-parse", "HEAD:base");
  let tree = await entry((index) => `100644 blob ${blob}\t${index}`);
  for (let depth = 0; depth < 9; depth += 1) {
    const inner = tree;
    tree = await entry((index) => `040000 tree ${inner}\t${index}`);
  }
  const head = await git("commit-tree", tree, "-p", baseSha, "-m", "bomb");
  const start = { baseSha, headSha: baseSha, targetBranch: "main" };
  await expect(readHistory(folder, start, head, signal, 300 * 1024 ** 2)).rejects.toMatchObject({
    code: "resources_exhausted",
  });
});
