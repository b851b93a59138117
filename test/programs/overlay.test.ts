import { execFileSync } from "node:child_process";
import { chown, lstat, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runProgram, shells, useFolder } from "./run.ts";

const folder = useFolder();

/** Only root can own, and make devices. */
describe.skipIf(process.getuid?.() !== 0).each(shells)("give-changes.sh in %s", (shell) => {
  test("gives the workspace's owner what root changed, and leaves all else as it is", async () => {
    const [changes, workspace] = [join(folder.path, "changes"), join(folder.path, "workspace")];
    for (const place of [changes, workspace]) {
      await mkdir(join(place, "made"), { recursive: true });
      await writeFile(join(place, "made/new\nline"), "");
      await symlink("/etc/passwd", join(place, "link"));
      await writeFile(join(place, "theirs"), "");
      await chown(join(place, "theirs"), 2_000, 2_000);
    }
    // It says whose the overlay is.
    await chown(changes, 1_000, 1_001);
    // Deleted in the overlay, and still below it.
    execFileSync("mknod", [join(changes, "gone"), "c", "0", "0"]);
    await writeFile(join(workspace, "gone"), "");
    await writeFile(join(workspace, "unchanged"), "");
    const run = { shell, cwd: "/", arguments: [changes, workspace, "1000:1001"] };
    expect(await runProgram("worker/clones/give-changes.sh", run)).toMatchObject({ code: 0, stderr: "" });
    const ownerOf = async (name: string): Promise<string> => {
      const { uid, gid } = await lstat(join(workspace, name));
      return `${uid}:${gid}`;
    };
    for (const name of ["made", "made/new\nline", "link"])
      expect([name, await ownerOf(name)]).toEqual([name, "1000:1001"]);
    expect(await ownerOf("theirs")).toBe("2000:2000");
    for (const name of ["gone", "unchanged"]) expect([name, await ownerOf(name)]).toEqual([name, "0:0"]);
  });
});
