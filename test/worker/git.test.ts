import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { git, mustGit } from "../../src/worker/git/git.ts";

const { signal } = new AbortController();
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-git-"));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

test("a connection by ssh whose other end is gone is given up", async () => {
  const ssh = join(folder, "ssh");
  await writeFile(
    ssh,
    `#!/bin/sh\necho "$@" > ${join(folder, "called")}\nexec /usr/bin/env cat ${join(folder, "called")} >&2\n`,
  );
  await chmod(ssh, 0o755);
  vi.stubEnv("PATH", `${folder}${delimiter}${process.env["PATH"]}`);
  const { stderr } = await git(["ls-remote", "ssh://git@example.com/acme/one"], { cwd: folder, signal });
  for (const option of ["ConnectTimeout", "ServerAliveInterval", "ServerAliveCountMax"])
    expect(stderr).toContain(option);
});

test.each([
  ["init", ["init", "--no-such-option"]],
  ["commit", ["-c", "user.name=A", "-c", "user.email=a@example", "commit"]],
  ["status", ["-C", "/", "--no-pager", "status"]],
])("a failure of git %s names that command, whatever options stand before it", async (command, parameters) => {
  await expect(mustGit(parameters, { cwd: folder, signal })).rejects.toThrow(`git ${command} failed: `);
});
