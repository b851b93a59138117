import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const program = join(import.meta.dirname, "../../../src/worker/steps/settle-gate.cjs");
let folder: string;
let clone: string;
let head: string;

const git = (cwd: string, ...parameters: string[]): string =>
  execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.com", ...parameters], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_ALLOW_PROTOCOL: "file" },
  }).trim();
/** Runs the program as a worker does. @returns what it prints */
const settle = (before: string | null, undo: boolean): string =>
  execFileSync(process.execPath, [program], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, HOME: join(folder, "home") },
    input: JSON.stringify({ clones: [{ directory: "clone", branch: "work", head }], before, undo }),
  });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-settle-"));
  clone = join(folder, "clone");
  const inner = join(folder, "inner");
  for (const [made, branch] of [
    [inner, "main"],
    [clone, "work"],
  ] as const) {
    git(folder, "init", "--quiet", "--initial-branch", branch, made);
    await writeFile(join(made, "file.txt"), "before");
    git(made, "add", "--all");
    git(made, "commit", "--quiet", "-m", "One");
  }
  git(clone, "submodule", "--quiet", "add", inner, "lib/inn\u00e9r");
  git(clone, "commit", "--quiet", "-m", "With a submodule");
  head = git(clone, "rev-parse", "HEAD");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test.each([["with"], ["without"]])("a submodule is brought back too, %s a record of before", async (way) => {
  const inner = join(clone, "lib/inn\u00e9r");
  const before = settle(null, false);
  await writeFile(join(inner, "file.txt"), "after");
  await writeFile(join(inner, "made.txt"), "after");
  git(inner, "commit", "--quiet", "-a", "-m", "Gate");
  git(clone, "commit", "--quiet", "-a", "-m", "Gate");
  expect(git(clone, "status", "--porcelain")).not.toBe("");
  expect(settle(way === "with" ? before : null, true)).not.toBe("");
  expect(git(clone, "status", "--porcelain")).toBe("");
  expect(git(clone, "rev-parse", "HEAD")).toBe(head);
  expect(git(inner, "log", "--format=%s")).toBe("One");
  expect(existsSync(join(inner, "made.txt"))).toBe(false);
});

test("a name that is no UTF-8 is removed if it is new, and stays if it was there, as do files that git ignores", async () => {
  const bytes = (name: string): Buffer => Buffer.from(join(clone, name), "latin1");
  await mkdir(join(clone, "old"));
  await writeFile(bytes("old/\u00e9"), "before");
  await writeFile(join(clone, ".git/info/exclude"), "ignored\n");
  const before = settle(null, false);
  await mkdir(join(clone, "new/deep"), { recursive: true });
  await writeFile(bytes("new/deep/\u00e9"), "after");
  await writeFile(bytes("old/\u00fc"), "after");
  await writeFile(join(clone, "ignored"), "after");
  settle(before, true);
  expect(
    [bytes("old/\u00e9"), bytes("old/\u00fc"), bytes("new"), bytes("ignored")].map((path) => existsSync(path)),
  ).toEqual([true, false, false, true]);
});
