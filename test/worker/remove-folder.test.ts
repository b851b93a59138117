import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

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
