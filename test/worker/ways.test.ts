import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chooseWay } from "../../src/worker/checkouts/ways.ts";
import { anotherSecond, createOverlayWorld, gitIn, overlaysMissing } from "./overlay-world.ts";

const missing = await overlaysMissing();
let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-ways-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

test.each([
  ["auto", "none", /^no overlays: the sandbox is not bubblewrap but none; no copies: /u],
  ["overlay", "container", /^no overlays: the sandbox is not bubblewrap but container; no copies: /u],
  ["copy", "bubblewrap", /^no overlays: OFFSTAGE_WORKSPACES is copy; no copies: /u],
  ["checkout", "bubblewrap", /^OFFSTAGE_WORKSPACES is checkout$/u],
] as const)("asked for %s with the sandbox %s, a clone is checked out, for this reason", async (asked, kind, why) => {
  // The test's folder is on a file system without shared blocks, or on one with them.
  const { way, why: said } = await chooseWay(folder, asked, { kind });
  expect(way === "copy" ? `${said}; no copies: ` : said).toMatch(why);
});

test.skipIf(missing !== "")("the best way is an overlay, and trying it leaves nothing", async () => {
  expect(await chooseWay(join(folder, "checkouts"), "auto", { kind: "bubblewrap" })).toEqual({
    way: "overlay",
    why: "",
  });
  expect(execFileSync("find", [folder, "-mindepth", "2"], { encoding: "utf8" })).toBe("");
  expect(execFileSync("cat", ["/proc/self/mounts"], { encoding: "utf8" })).not.toContain(folder);
});

function run(program: string, ...parameters: readonly string[]): void {
  execFileSync(program, parameters, { stdio: "ignore" });
}

/** Why no file system that has shared blocks can be made here; empty if one can. */
function noReflinks(): string {
  if (process.getuid?.() !== 0) return "it needs root";
  try {
    run("mkfs.xfs", "-V");
    return "";
  } catch {
    return "mkfs.xfs is not installed";
  }
}

describe.skipIf(noReflinks() !== "")("where files can share their blocks", () => {
  beforeEach(() => {
    run("truncate", "-s", "400M", join(folder, "image"));
    run("mkfs.xfs", "-q", "-m", "reflink=1", join(folder, "image"));
    run("mkdir", join(folder, "disk"));
    run("mount", "-o", "loop", join(folder, "image"), join(folder, "disk"));
  });

  afterEach(() => void run("umount", join(folder, "disk")));

  test("a clone is a copy of a shared checkout, which takes no more of the disk, and with which git is content", async () => {
    const source = join(folder, "source");
    await mkdir(join(source, "sub"), { recursive: true });
    gitIn(source, "init", "--quiet", "--initial-branch", "main");
    await writeFile(join(source, "large"), "x".repeat(20 * 1024 ** 2));
    await writeFile(join(source, "sub/file"), "file\n");
    gitIn(source, "add", "--all");
    gitIn(source, "commit", "--quiet", "-m", "first");
    const world = await createOverlayWorld("copy", { folder: join(folder, "disk") });
    try {
      expect((await world.services.checkouts.way()).way).toBe("copy");
      await world.session(source);
      const used = (): number =>
        Number(
          execFileSync("df", ["--output=used", "-k", join(folder, "disk")])
            .toString()
            .split("\n")[1],
        );
      await anotherSecond();
      const before = used();
      const first = await world.session(source);
      expect(used() - before).toBeLessThan(5_000);
      const index = "stat -c %i .git/index";
      const [one, other] = (await first.run(`${index}; git status -s; ${index}`)).split("\n");
      // git writes an index again if it had to look at a file.
      expect(one).toBe(other);
      await writeFile(join(source, "sub/file"), "changed\n");
      await writeFile(join(source, "sub/more"), "more\n");
      gitIn(source, "add", "--all");
      gitIn(source, "commit", "--quiet", "-m", "second");
      const near = await world.session(source);
      expect(await near.run("git status -sb; git log -1 --format=%s; cat sub/file sub/more; find .. -user 0")).toBe(
        "## offstage/work\nsecond\nchanged\nmore",
      );
      await first.run("echo mine > sub/file; rm large");
      expect(await (await world.session(source)).run("cat sub/file; wc -c < large; git status -s")).toBe(
        "changed\n20971520",
      );
      expect(dirname(first.clone.folder)).toContain(join(folder, "disk"));
    } finally {
      await world.close();
    }
  });
});
