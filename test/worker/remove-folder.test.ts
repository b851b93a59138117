import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { waitFor } from "../wait-for.ts";

let data: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "offstage-remove-"));
});

afterEach(() => void execFileSync("rm", ["-rf", data]));

/** Folders in each other, of which the innermost has a path that no call of the system takes, and may not be changed. */
function makeDeep(folder: string): void {
  const program = `chdir $ARGV[0] or die; for (1 .. 5000) { mkdir "d" or die; chdir "d" or die } open(my $f, ">", "file") or die; chmod 0500, "."`;
  execFileSync("perl", ["-e", program, folder]);
}

describe("what an agent made of folders deeper than any path", { timeout: hangTimeoutMs }, () => {
  test("is removed with its session, forgotten or not, and begun anew", async () => {
    const folders = createSessionFolders(data);
    const { workspace } = await folders.begin("deep");
    makeDeep(workspace);
    // It really can't be removed by its path.
    await expect(rm(workspace, { recursive: true })).rejects.toMatchObject({ code: "ENAMETOOLONG" });
    await folders.begin("deep");
    expect(existsSync(join(workspace, "d"))).toBe(false);
    makeDeep(workspace);
    await folders.forget("deep");
    await folders.begin("deep");
    makeDeep(workspace);
    await folders.remove("deep");
    expect(await folders.list()).toEqual([]);
  });

  test("is removed with its setup, and nothing that a link leads to", async () => {
    const folders = createSessionFolders(data);
    await folders.begin("setup");
    const outside = join(data, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "file"), "x");
    const folder = await folders.setupFolder("setup");
    makeDeep(folder);
    await symlink(outside, join(folder, "link"));
    await folders.endSetups("setup");
    expect([existsSync(folder), existsSync(join(outside, "file"))]).toEqual([false, true]);
  });
});

test("a removal that goes on without its killed server leaves the folders alone that the next one made", async () => {
  await createSessionFolders(data).begin("one");
  const [began, goes] = [join(data, "began"), join(data, "goes")];
  const slow = `#!/bin/sh\n: > ${began}\nwhile [ ! -e ${goes} ]; do sleep 0.02; done\nexec /bin/rm "$@"\n`;
  await mkdir(join(data, "bin"));
  await writeFile(join(data, "bin/rm"), slow);
  await chmod(join(data, "bin/rm"), 0o755);
  const { PATH: path = "" } = process.env;
  process.env["PATH"] = `${join(data, "bin")}:${path}`;
  // Of the server that is killed only the program is left: what it would do afterwards fails.
  const killed = createSessionFolders(data)
    .begin("one")
    .catch(() => undefined);
  try {
    await waitFor(() => existsSync(began), "the removal began");
  } finally {
    process.env["PATH"] = path;
  }
  const { workspace } = await createSessionFolders(data).begin("one");
  await writeFile(join(workspace, "file"), "x");
  await writeFile(goes, "");
  await killed;
  expect(existsSync(join(workspace, "file"))).toBe(true);
});
