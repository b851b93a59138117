import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import { exportRepository } from "../../src/worker/export/export-repository.ts";
import { completeClones, makeClones } from "../../src/worker/clones/clones.ts";
import type { Clone } from "../../src/worker/clones/clone.ts";
import { authorVariables, mustGit } from "../../src/worker/git/git.ts";
import { sparseCommit, sparseHas, sparsePatterns } from "../../src/worker/git/sparse-checkout.ts";
import { cloneServicesIn, cloneSourceAt } from "./clone-source.ts";

/** Clones that have some folders of their repository. */
let folder: string;
const { signal } = new AbortController();
const author = { name: "A", email: "a@example" };
const git = (cwd: string, ...command: string[]) => mustGit(command, { cwd, signal, local: true });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-sparse-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const paths = [
  "root.txt",
  "services/read.me",
  "services/api/main.c",
  "services/api/deep/er.c",
  "services/apix/no.c",
  "services/web/index.html",
  "docs/a.md",
  "we[i]rd*/na?me/x.txt",
  "we[i]rd*/x.txt",
  "with space/größe/x.txt",
  "back\\slash/x.txt",
  "-dash/x.txt",
  "#hash/x.txt",
  "!not/x.txt",
];

async function repository(): Promise<string> {
  const path = join(folder, "remote");
  await mkdir(path);
  await git(path, "init", "--quiet", "--initial-branch", "main");
  for (const name of paths) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), `${name}\n`);
  }
  await git(path, "add", "--all");
  await git(path, "-c", "user.name=A", "-c", "user.email=a@example", "commit", "--quiet", "--message", "All");
  return path;
}

/** A clone as a session has it, and what exports it. */
async function sparseClone(sparse: readonly string[]) {
  const services = cloneServicesIn(join(folder, "data"));
  const source = cloneSourceAt(await repository());
  const request = {
    sessionId: crypto.randomUUID(),
    sources: [{ ...source, remote: { ...source.remote, sparse } }],
    progress: () => undefined,
    signal,
  };
  const { clones } = await makeClones(services, request, null);
  await completeClones(services, request.sessionId, clones);
  const clone = clones[0] as Clone;
  const { workspace, home } = services.folders.pathsOf(request.sessionId);
  const exported = () =>
    exportRepository({
      limits: { memoryBytes: 2 ** 30, processes: 500, diskBytes: 2 ** 30, cpus: 2 },
      sandbox: createUnsandboxed(),
      mirror: clone.mirror.path,
      folders: { workspace, home, readOnly: [], directory: clone.remote.directory },
      sessionId: request.sessionId,
      branch: clone.remote.branch,
      start: clone,
      identity: { author, message: "Work", coAuthor: null },
      signal,
    });
  return { clone, exported };
}

function shell(cwd: string, commands: string): string {
  const env = { ...process.env, ...authorVariables(author), HOME: folder };
  return execFileSync("sh", ["-ec", commands], { cwd, env, stdio: "pipe" }).toString();
}

test.each([
  [["docs"]],
  [["services/api", "docs"]],
  [["services/api", "services"]],
  [["we[i]rd*/na?me", "back\\slash", "-dash", "#hash", "!not", "with space/größe"]],
  [["gone"]],
])("the folders %j are those of git's own command, for git and for us", async (folders) => {
  const { clone } = await sparseClone(folders);
  const ours = await readFile(join(clone.folder, ".git/info/sparse-checkout"), "utf8");
  expect(ours).toBe(sparsePatterns(folders));
  const marked = (await git(clone.folder, "ls-files", "-t", "-z")).split("\0").filter((line) => line !== "");
  const there = marked.filter((line) => line.startsWith("H ")).map((line) => line.slice(2));
  expect(there).toEqual(paths.filter(sparseHas(folders)).toSorted());
  expect(shell(clone.folder, "git status --porcelain")).toBe("");
  const some = await sparseCommit({ folders }, clone.headSha, { cwd: clone.mirror.path, signal });
  expect((await git(clone.mirror.path, "ls-tree", "-r", "--name-only", "-z", some)).split("\0").toSorted()).toEqual(
    ["", ...there].toSorted(),
  );
  shell(clone.folder, `printf '%s\\n' "$F" | git sparse-checkout set --cone --stdin`.replace("$F", folders.join("\n")));
  expect(ours).toBe(await readFile(join(clone.folder, ".git/info/sparse-checkout"), "utf8"));
});

test("files that collide outside of the folders count as there too", async () => {
  const { clone } = await sparseClone(["docs"]);
  const options = { cwd: clone.mirror.path, signal };
  const filesOf = async (sha: string) =>
    (await git(clone.mirror.path, "ls-tree", "-r", "--name-only", "-z", sha)).split("\0");
  const less = await filesOf(await sparseCommit({ folders: ["docs"] }, clone.headSha, options));
  const path = "services/web/index.html";
  const more = await filesOf(await sparseCommit({ folders: ["docs"], paths: [path] }, clone.headSha, options));
  expect(less).not.toContain(path);
  expect(more.toSorted()).toEqual([...less, path].toSorted());
});

describe("the work in a clone with the folder docs alone, after the agent left it with", () => {
  const add = "echo b > docs/b.md";
  const collide =
    "git checkout -q -b x; git sparse-checkout add services/web; echo x > services/web/index.html; git commit -qam X; git checkout -q -; echo y > services/web/index.html; git commit -qam Y; git sparse-checkout set docs; ! git merge -q x";
  test.each<[string, string, string]>([
    ["a change", add, "A\tdocs/b.md"],
    ["a file elsewhere", "mkdir -p services/api && echo b > services/api/b.c", "A\tservices/api/b.c"],
    ["a deletion", "rm docs/a.md", "D\tdocs/a.md"],
    ["a deletion elsewhere", "git rm -q --sparse --cached services/web/index.html", "D\tservices/web/index.html"],
    [
      "another folder",
      "git sparse-checkout add services/api; echo c > services/api/main.c; rm services/api/deep/er.c",
      "M\tservices/api/main.c D\tservices/api/deep/er.c",
    ],
    [
      "everything",
      "git sparse-checkout disable; echo c > services/api/main.c; rm services/api/deep/er.c",
      "M\tservices/api/main.c D\tservices/api/deep/er.c",
    ],
    ["a commit of its own", `${add}; git add docs; git commit -qm Mine`, "A\tdocs/b.md"],
    ["another branch", `${add}; git checkout -q -b other; git add docs; git commit -qm Mine`, "A\tdocs/b.md"],
    ["no .git", `${add}; rm -rf .git`, "A\tdocs/b.md"],
    ["another .git", `${add}; rm -rf .git; git init -q; git add .; git commit -qm Mine`, "A\tdocs/b.md"],
    ["no index", `${add}; rm .git/index`, "A\tdocs/b.md"],
    ["an index without marks", `${add}; git read-tree HEAD`, "A\tdocs/b.md"],
    ["no setting", `${add}; git config --unset core.sparseCheckout`, "A\tdocs/b.md"],
    ["a stash", `${add}; git add docs; git stash -q; git stash pop -q`, "A\tdocs/b.md"],
    [
      "half a merge that collides elsewhere",
      `${collide}; ${add}`,
      // What is under way is not committed.
      "M\tservices/web/index.html",
    ],
    [
      "a merge that collided elsewhere and is resolved",
      `${collide}; echo z > services/web/index.html; git add --sparse services/web/index.html; ${add}`,
      "A\tdocs/b.md M\tservices/web/index.html",
    ],
  ])("%s says nothing of what was not there", async (_name, commands, changed) => {
    const { clone, exported } = await sparseClone(["docs"]);
    shell(clone.folder, commands);
    const { headSha } = await exported();
    const diff = await git(clone.mirror.path, "diff", "--name-status", "--no-renames", clone.baseSha, headSha);
    expect(diff.split("\n").toSorted()).toEqual(changed.split(" ").toSorted());
  });
});
