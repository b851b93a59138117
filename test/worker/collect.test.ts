import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import type { Sandbox } from "../../src/sandboxes/sandbox.ts";
import { collectRepository } from "../../src/worker/collect.ts";
import { mustGit } from "../../src/worker/git.ts";

let folder: string;
const { signal } = new AbortController();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-collect-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Takes the work out of a repository with one commit. @param spoil what the agent did to its repository */
async function collectWith(
  sandbox: Sandbox,
  options: { spoil?: readonly string[]; file?: Buffer; limitMs?: number; diskBytes?: number } = {},
): Promise<unknown> {
  const [mirror, workspace, home] = ["mirror.git", "workspace", "home"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const git = (cwd: string, ...command: string[]) => mustGit(command, { cwd, signal, local: true });
  await Promise.all([mkdir(join(workspace, "one"), { recursive: true }), mkdir(home), mkdir(mirror)]);
  const one = join(workspace, "one");
  await git(one, "init", "--quiet");
  await git(one, "-c", "user.name=A", "-c", "user.email=a@example", "commit", "--allow-empty", "--message", "base");
  await git(folder, "clone", "--quiet", "--bare", one, mirror);
  const baseSha = (await git(one, "rev-parse", "HEAD")).trim();
  const { spoil, file = Buffer.from("work"), limitMs, diskBytes = 2 ** 30 } = options;
  if (spoil !== undefined) await git(one, ...spoil);
  await writeFile(join(one, ".gitattributes"), "work filter=own\n");
  await writeFile(join(one, "work"), file);
  return collectRepository({
    limits: { memoryBytes: 2 ** 30, processes: 500, diskBytes, cpus: 2 },
    ...(limitMs !== undefined && { limitMs }),
    sandbox,
    mirror,
    place: { workspace, home, readOnly: [], directory: "one" },
    sessionId: crypto.randomUUID(),
    start: { baseSha, headSha: baseSha },
    identity: { author: { name: "A", email: "a@example" }, message: "Work", coAuthor: null },
    signal,
  });
}

test("a sandbox that does not start is no fault of the work's: a retry may take it out", async () => {
  const working = createUnsandboxed();
  // As a container's ends whose engine does not answer.
  const end = ["-c", "echo the engine did not answer >&2; exit 127"];
  const broken: Sandbox = { ...working, start: (request) => working.start({ ...request, arguments: end }) };
  await expect(collectWith(broken)).rejects.toMatchObject({
    code: "sandbox_unavailable",
    retryable: true,
    message: expect.stringContaining("the engine did not answer") as string,
  });
});

test("a sandbox that starts takes out what is there", async () => {
  expect(await collectWith(createUnsandboxed())).toMatchObject({ commits: [{ by: "offstage" }] });
});

test("what an agent set git to run holds the work up no longer than it may", async () => {
  const spoil = ["config", "filter.own.clean", "sleep 616"];
  await expect(collectWith(createUnsandboxed(), { spoil, limitMs: 1_000 })).rejects.toMatchObject({
    code: "resources_exhausted",
    message: expect.stringContaining("it took more than") as string,
  });
  expect(execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })).not.toContain("sleep 616");
});

test("work that is larger than a sandbox's disk fills no other", async () => {
  const work = collectWith(createUnsandboxed(), { file: randomBytes(3_000_000), diskBytes: 1_000_000 });
  await expect(work).rejects.toMatchObject({
    code: "resources_exhausted",
    message: expect.stringContaining("OFFSTAGE_SANDBOX_DISK_MB") as string,
  });
});
