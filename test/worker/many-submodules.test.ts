import { mkdtemp, mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import type { Clone } from "../../src/worker/clones/clone.ts";
import { makeClones } from "../../src/worker/clones/clones.ts";
import { exportRepository } from "../../src/worker/export/export-repository.ts";
import { mustGit } from "../../src/worker/git/git.ts";
import { cloneServicesIn, cloneSourceAt } from "./clone-source.ts";

/** A repository whose trees name more submodules than any real one, in a few megabytes. */
let folder: string;
const { signal } = new AbortController();
const sha = "1234567890123456789012345678901234567890";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-links-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** A repository with one commit. @param entries of its root, as `git mktree` takes them */
async function repository(entries: Iterable<string>, gitmodules: Iterable<string>): Promise<string> {
  const path = join(folder, "remote");
  await mkdir(path);
  const options = { cwd: path, signal, local: true };
  await mustGit(["init", "--quiet", "--initial-branch", "main"], options);
  const blob = await mustGit(["hash-object", "-w", "--stdin"], { ...options, input: Readable.from(gitmodules) });
  const root = [`100644 blob ${blob}\t.gitmodules\n`, ...entries].join("");
  const tree = await mustGit(["mktree", "--missing"], { ...options, input: Readable.from([root]) });
  const who = ["-c", "user.name=A", "-c", "user.email=a@example"];
  const commit = await mustGit([...who, "commit-tree", tree, "-m", "Links"], options);
  await mustGit(["update-ref", "refs/heads/main", commit], options);
  return path;
}

test("of 20,000 submodules a clone records a hundred, and says how many it left out, and work is taken out of it", async () => {
  const count = 20_000;
  const names = Array.from({ length: count }, (_, index) => `m${String(index).padStart(6, "0")}`);
  const url = await repository(
    names.map((name) => `160000 commit ${sha}\t${name}\n`),
    ['[submodule "m"]\n\tpath = m000000\n\turl = https://git.example/a/b\n'],
  );
  const services = cloneServicesIn(join(folder, "data"));
  const source = cloneSourceAt(url);
  const sessionId = crypto.randomUUID();
  const request = { sessionId, sources: [source], progress: () => undefined, signal };
  const { clones } = await makeClones(services, request, null);
  const clone = clones[0] as Clone;
  expect(clone.submodules).toHaveLength(101);
  expect(clone.submodules?.at(-1)).toMatchObject({ path: "m000100", url: null });
  expect(clone.submodules?.at(-1)?.problem).toContain(`one of ${count - 100} submodules beyond the first 100`);
  const { workspace, home } = services.folders.pathsOf(sessionId);
  const work = await exportRepository({
    limits: services.limits,
    limitMs: 120_000,
    sandbox: createUnsandboxed(),
    mirror: clone.mirror.path,
    folders: { workspace, home, readOnly: [], directory: clone.remote.directory },
    sessionId,
    branch: clone.remote.branch,
    start: clone,
    identity: { author: { name: "A", email: "a@example" }, message: "Work", coAuthor: null },
    signal,
  });
  expect(work.isMoved).toBe(false);
});

test("a .gitmodules of 50 MB is not read, and each submodule says so", async () => {
  const settings = function* () {
    for (let index = 0; index < 700_000; index += 1)
      yield `[submodule "s${index}"]\n\tpath = s${index}\n\turl = https://git.example/acme/${index}\n`;
  };
  const url = await repository([`160000 commit ${sha}\ts699999\n`], settings());
  const services = cloneServicesIn(join(folder, "data"));
  const request = { sessionId: crypto.randomUUID(), sources: [cloneSourceAt(url)], progress: () => undefined, signal };
  const { clones } = await makeClones(services, request, null);
  expect(clones[0]?.submodules).toMatchObject([{ path: "s699999", url: null }]);
  expect(clones[0]?.submodules?.[0]?.problem).toContain(".gitmodules is larger than 1 MB");
});
