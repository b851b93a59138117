import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import type { Sandbox } from "../../src/sandboxes/sandbox.ts";
import { exportRepository } from "../../src/worker/export/export-repository.ts";
import { authorVariables, mustGit } from "../../src/worker/git/git.ts";
import { openSigner } from "../../src/worker/git/signer.ts";
import { commandLines, uniqueMark } from "../sandboxes/sandbox-folders.ts";

const author = { name: "A", email: "a@example" };
let folder: string;
const { signal } = new AbortController();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-export-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/**
 * Takes the work out of a repository with one commit.
 * @param options.base what makes further files of that commit
 * @param options.commands what makes that which the agent left
 */
async function exportWith(
  sandbox: Sandbox,
  options: {
    base?: string;
    commands?: string;
    spoil?: readonly string[];
    file?: Buffer;
    limitMs?: number;
    diskBytes?: number;
  } = {},
): Promise<
  Pick<Awaited<ReturnType<typeof exportRepository>>, "headSha" | "unfinished" | "leftOut"> & { files: string[] }
> {
  const [mirror, workspace, home] = ["mirror.git", "workspace", "home"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const git = (cwd: string, ...command: string[]) => mustGit(command, { cwd, signal, local: true });
  await Promise.all([mkdir(join(workspace, "one"), { recursive: true }), mkdir(home), mkdir(mirror)]);
  const one = join(workspace, "one");
  await git(one, "init", "--quiet", "--initial-branch", "work");
  await writeFile(join(one, "a.txt"), "a\n");
  if (options.base !== undefined) execFileSync("sh", ["-ec", options.base], { cwd: one });
  await git(one, "add", ".");
  await git(one, "-c", "user.name=A", "-c", "user.email=a@example", "commit", "--message", "base");
  await git(folder, "clone", "--quiet", "--bare", one, mirror);
  const baseSha = (await git(one, "rev-parse", "HEAD")).trim();
  const { commands, spoil, file = Buffer.from("work"), limitMs, diskBytes = 2 ** 30 } = options;
  if (spoil !== undefined) await git(one, ...spoil);
  if (commands === undefined) {
    await writeFile(join(one, ".gitattributes"), "work filter=own\n");
    await writeFile(join(one, "work"), file);
  } else {
    const env = { ...process.env, ...authorVariables(author) };
    execFileSync("sh", ["-ec", commands], { cwd: one, env, stdio: "pipe" });
  }
  const exported = await exportRepository({
    limits: { memoryBytes: 2 ** 30, processes: 500, diskBytes, cpus: 2 },
    ...(limitMs !== undefined && { limitMs }),
    sandbox,
    mirror,
    folders: { workspace, home, readOnly: [], directory: "one" },
    sessionId: crypto.randomUUID(),
    branch: "work",
    start: { baseSha, headSha: baseSha },
    identity: { author, message: "Work", coAuthor: null },
    tellsLeftOut: true,
    signal,
  });
  const listed = await git(mirror, "ls-tree", "-r", "--name-only", "-z", exported.headSha);
  return { ...exported, files: listed.split("\0").filter((name) => name !== "") };
}

test("a sandbox that does not start is no fault of the work's: a retry may take it out", async () => {
  const working = createUnsandboxed();
  // As a container's ends whose engine does not answer.
  const end = ["-c", "echo the engine did not answer >&2; exit 127"];
  const broken: Sandbox = { ...working, start: (request) => working.start({ ...request, arguments: end }) };
  await expect(exportWith(broken)).rejects.toMatchObject({
    code: "sandbox_unavailable",
    retryable: true,
    message: expect.stringContaining("the engine did not answer") as string,
  });
});

test("a sandbox that starts takes out what is there", async () => {
  expect(await exportWith(createUnsandboxed())).toMatchObject({ commits: [{ by: "offstage" }] });
});

test("what an agent set git to run holds the work up no longer than it may", async () => {
  const mark = uniqueMark();
  const spoil = ["config", "filter.own.clean", `sleep ${mark}`];
  await expect(exportWith(createUnsandboxed(), { spoil, limitMs: 1_000 })).rejects.toMatchObject({
    code: "resources_exhausted",
    message: expect.stringContaining("it took more than") as string,
  });
  expect(commandLines().filter((line) => line.includes(`sleep ${mark}`))).toEqual([]);
});

test("work that is larger than a sandbox's disk fills no other", async () => {
  const work = exportWith(createUnsandboxed(), { file: randomBytes(3_000_000), diskBytes: 1_000_000 });
  await expect(work).rejects.toMatchObject({
    code: "resources_exhausted",
    message: expect.stringContaining("OFFSTAGE_SANDBOX_DISK_MB") as string,
  });
});

const commit = "echo b > b.txt && git add . && git commit -qm B";
const conflict =
  "git checkout -qb x && echo x > a.txt && git commit -qam X && git checkout -q work && echo y > a.txt && git commit -qam Y";

test.each<[string, string, string[]]>([
  ["a commit of its own", commit, ["b.txt"]],
  ["another branch", `git checkout -qb other && ${commit}`, ["b.txt"]],
  ["a detached HEAD", `git checkout -q --detach && ${commit}`, ["b.txt"]],
  ["a look at where it began, after a commit", `${commit} && git checkout -q HEAD~1`, ["b.txt"]],
  ["a look at another branch, after a commit", `git branch main && ${commit} && git checkout -q main`, ["b.txt"]],
  ["no .git", "echo b > b.txt && rm -rf .git", ["b.txt"]],
  ["another .git", `rm -rf .git && git init -q && ${commit}`, ["b.txt"]],
  ["a branch without a commit", "echo b > b.txt && git checkout -q --orphan new", ["b.txt"]],
  ["half a merge", `${conflict} && ! git merge -q x && echo both > a.txt && echo b > b.txt`, ["b.txt"]],
  ["half a rebase", `${conflict} && ! git rebase -q x && echo both > a.txt && echo b > b.txt`, ["b.txt"]],
  ["locks of gits that were killed", "touch .git/index.lock .git/HEAD.lock && echo b > b.txt", ["b.txt"]],
  [
    "a repository without a commit inside",
    "git init -q sub && echo b > sub/b.txt && echo c > c.txt",
    ["c.txt", "sub/b.txt"],
  ],
  [
    "repositories inside each other",
    `git init -q sub && cd sub && ${commit} && git init -q in && echo c > in/c.txt`,
    ["sub/b.txt", "sub/in/c.txt"],
  ],
  ["a clone of another project", "git clone -q . clone && echo b > b.txt", ["b.txt", "clone"]],
  ["a worktree", "git worktree add -q tree && echo b > b.txt", ["b.txt"]],
  ["an empty repository inside", "git init -q empty && echo b > b.txt", ["b.txt"]],
  ["odd names", "echo > 'b\\c' && mkdir 'd e' && echo > 'd e/ü' && echo > 'new\nline'", ["b\\c", "d e/ü", "new\nline"]],
  ["a pipe and a link that leads nowhere", "mkfifo pipe && ln -s nowhere link", ["link"]],
])("takes out what there is where an agent leaves %s", async (_, commands, files) => {
  const exported = await exportWith(createUnsandboxed(), { commands });
  expect(exported.files.filter((name) => name !== "a.txt").toSorted()).toEqual(files.toSorted());
});

test.each<[string, string, { files: string[]; refused?: string[]; why?: string; refs?: string[] }]>([
  [
    "texts without the encoding that the attributes name",
    String.raw`printf '*.rc working-tree-encoding=UTF-16
' > .gitattributes; echo plain > x.rc; echo b > b.txt`,
    { files: [".gitattributes", "a.txt", "b.txt"], refused: ["x.rc"], why: "BOM is required in 'x.rc'" },
  ],
  [
    "a pipe in the place of a file, and names that lead into .git elsewhere",
    "rm a.txt; mkfifo a.txt; mkdir .GIT; echo 1 > .GIT/x; echo b > b.txt",
    { files: ["a.txt", "b.txt"], refused: [".GIT/x", "a.txt"], why: "" },
  ],
  [
    "a filter that fails",
    "git config filter.x.clean false; git config filter.x.required true; echo '*.md filter=x' > .gitattributes; echo b > b.txt; echo c > c.md",
    { files: [".gitattributes", "a.txt", "b.txt"], refused: ["c.md"], why: "clean filter 'x' failed" },
  ],
  ["a clone without a working directory", "git config core.bare true; echo b > b.txt", { files: ["a.txt", "b.txt"] }],
  [
    "a clone whose files are said to be elsewhere",
    "mkdir ../other; git config core.worktree $PWD/../other; echo b > b.txt",
    { files: ["a.txt", "b.txt"] },
  ],
  ["an index that can't be read", "echo broken > .git/index; echo b > b.txt", { files: ["a.txt", "b.txt"] }],
  [
    "a check of line ends that refuses files",
    "git config core.autocrlf true; git config core.safecrlf true; printf 'b\\r\\nb\\n' > b.txt",
    { files: ["a.txt", "b.txt"] },
  ],
  [
    "commits on a branch that it left",
    "git checkout -qb other && echo o > o.txt && git add . && git commit -qm O && git checkout -q work && echo b > b.txt",
    { files: ["a.txt", "b.txt"], refs: ["refs/heads/other"] },
  ],
  [
    "a branch with what it has on its own, too, and one of before",
    "git branch before; echo o > o.txt; git add .; git commit -qm O; git branch copy; git commit -q --amend -m P",
    { files: ["a.txt", "o.txt"] },
  ],
  [
    "something in a stash",
    "echo o > a.txt; git stash -q; echo b > b.txt",
    { files: ["a.txt", "b.txt"], refs: ["refs/stash"] },
  ],
])("takes out what git takes, and names the rest, where an agent leaves %s", async (_, commands, expected) => {
  const { files, leftOut } = await exportWith(createUnsandboxed(), { commands });
  const { files: kept, refused = [], why = "none", refs = [] } = expected;
  expect({ files, refused: leftOut.files.toSorted(), refs: leftOut.refs }).toEqual({ files: kept, refused, refs });
  expect(leftOut.why ?? "none").toContain(why);
});

const refusedModules = `git config -f .gitmodules submodule.x.update '!touch x'`;

test("what git refuses of a .gitmodules that the repository has had all along holds no work back", async () => {
  const base = `${refusedModules}; mkdir inner; cp .gitmodules inner`;
  const { files } = await exportWith(createUnsandboxed(), { base, commands: "echo b > b.txt; echo c > inner/c.txt" });
  expect(files).toEqual([".gitmodules", "a.txt", "b.txt", "inner/.gitmodules", "inner/c.txt"]);
});

test.each([
  ["made", "true"],
  ["changed", `${refusedModules}; echo '# one' >> .gitmodules`],
])("a .gitmodules that git refuses and the agent has %s is named, with what can be done", async (_, base) => {
  const commands = `${refusedModules}; echo '# two' >> .gitmodules`;
  await expect(exportWith(createUnsandboxed(), { base, commands })).rejects.toMatchObject({
    code: "workspace_broken",
    message: expect.stringMatching(/refuses a \.gitmodules .*gitmodulesUpdate: .*!touch x$/u) as string,
    remedy: expect.stringContaining("message") as string,
  });
});

const three = ["one", "two", "three"]
  .map((name) => `echo ${name} > ${name} && git add . && git commit -qm ${name}`)
  .join(" && ");
const all = ["a.txt", "one", "three", "two"];
const stashed = "echo c > a.txt && git stash -q && echo d > a.txt && git commit -qam D && ! git stash pop -q";

test.each<[string, string, { files: string[]; unfinished: string[] | null }]>([
  [
    "a rebase that stopped before its end",
    `${three} && GIT_SEQUENCE_EDITOR="sed -i '1s/^pick/edit/'" git rebase -q -i HEAD~3`,
    { files: all, unfinished: [] },
  ],
  [
    "a rebase that stopped before its end, by mails",
    `git checkout -qb x && echo x > a.txt && git commit -qam X && git checkout -q work && echo y > a.txt && git commit -qam Y && ${three} && ! git rebase -q --apply x && echo both > a.txt`,
    { files: all, unfinished: [] },
  ],
  ["a rebase of files that collide", `${conflict} && ! git rebase -q x`, { files: ["a.txt"], unfinished: ["a.txt"] }],
  ["what a stash collides with", stashed, { files: ["a.txt"], unfinished: ["a.txt"] }],
  ["a stash that collided, resolved", `${stashed} && echo both > a.txt`, { files: ["a.txt"], unfinished: null }],
  ["a bisection of its commits", `${three} && git bisect start HEAD HEAD~3`, { files: all, unfinished: null }],
  ["an earlier commit of its own, looked at", `${three} && git checkout -q HEAD~1`, { files: all, unfinished: null }],
])("loses no commit and takes no conflict for work where an agent leaves %s", async (_, commands, expected) => {
  const { files, unfinished, headSha } = await exportWith(createUnsandboxed(), { commands });
  expect({ files, unfinished }).toEqual(expected);
  const shown = await mustGit(["show", `${headSha}:a.txt`], { cwd: join(folder, "mirror.git"), signal });
  expect(shown).not.toContain("<<<<<<<");
});

describe.skipIf(spawnSync("ssh-keygen", ["-?"]).error !== undefined)("signed work", () => {
  test("is the same if it is taken out again, and others' commits in it stay as they are", async () => {
    const [mirror, workspace, home] = ["mirror.git", "workspace", "home"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const one = join(workspace, "one");
    await Promise.all([mkdir(one, { recursive: true }), mkdir(home)]);
    const env = { ...process.env, ...authorVariables(author) };
    const shell = (commands: string): string =>
      execFileSync("sh", ["-ec", commands], { cwd: one, env }).toString().trim();
    const baseSha = shell(
      "git init -q -b work . && echo a > a && git add a && git commit -qm base && git rev-parse HEAD",
    );
    // A reviewer's commit, which the worker fetched, and which the agent merges.
    const theirs = shell(
      "git checkout -q -b theirs && echo b > b && git add b && git commit -qm theirs && git rev-parse HEAD",
    );
    shell(`git clone -q --bare . ${mirror} && git -C ${mirror} update-ref refs/offstage/latest/theirs ${theirs}`);
    shell("git checkout -q work && echo c > c && git add c && git commit -qm mine && git merge -q -m merged theirs");
    const unsigned = shell("git rev-parse HEAD");
    const key = join(folder, "id");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    const signer = await openSigner(key, { folder: join(folder, "signing"), agent: null });
    const committer = { name: "C", email: "c@example" };
    const request = {
      limits: { memoryBytes: 2 ** 30, processes: 500, diskBytes: 2 ** 30, cpus: 2 },
      sandbox: createUnsandboxed(),
      mirror,
      folders: { workspace, home, readOnly: [], directory: "one" },
      sessionId: crypto.randomUUID(),
      branch: "work",
      start: { baseSha, headSha: baseSha },
      identity: { author, committer, signer, message: "Work", coAuthor: null },
      signal,
    };
    await writeFile(join(one, ".git/objects/info/alternates"), `${join(mirror, "objects")}\n`);
    const first = await exportRepository(request);
    expect(first.commits.map(({ subject }) => subject).toSorted()).toEqual(["merged", "mine", "theirs"]);
    expect(shell("git rev-parse HEAD")).toBe(first.headSha);
    expect(shell(`git rev-parse ${first.headSha}^2`)).toBe(theirs);
    for (const sha of [first.headSha, `${first.headSha}^1`])
      expect(shell(`git cat-file commit ${sha}`)).toContain("gpgsig ");
    // A worker that died before the clone was moved: what another takes out is the same, and nothing is new.
    shell(`git update-ref HEAD ${unsigned}`);
    expect(await exportRepository(request)).toEqual({
      headSha: first.headSha,
      commits: [],
      isMoved: false,
      changedSubmodules: [],
      unfinished: null,
      leftOut: { refs: [], files: [], why: null },
    });
    expect(shell("git rev-parse HEAD")).toBe(first.headSha);
  });
});
