import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import type { Exceeded } from "../../src/sandboxes/sandbox.ts";
import { createImageDisks, imageProblem, type SessionDisks } from "../../src/worker/disk/session-disk.ts";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

const megabyte = 1024 * 1024;
const bounds = { diskBytes: 64 * megabyte, files: 20_000 };
/** Why a session can't have a disk of its own here: no root, no loop devices, or no mkfs.ext4. */
const problem = await imageProblem();

let data: string;
let disks: SessionDisks;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "offstage-disks-"));
  disks = createImageDisks(join(data, "disks"), bounds);
});

afterEach(async () => {
  const { remove, list } = createSessionFolders(data, disks);
  for (const id of await list()) await remove(id);
  await rm(data, { recursive: true, force: true });
});

const mountsBelow = (folder: string): string[] =>
  readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => line.includes(` ${folder}`));

/** What an image takes of the disk that it is on. */
const taken = (id: string): number => statSync(join(data, "disks", `${id}.ext4`)).blocks * 512;

describe.skipIf(problem !== null)("a session's own disk", () => {
  test("keeps its folders over a close and a start of the server, and goes with them", async () => {
    const folders = createSessionFolders(data, disks);
    const { workspace } = await folders.begin("one");
    expect(mountsBelow(join(data, "sessions/one"))).toHaveLength(1);
    await writeFile(join(workspace, "work"), "kept");
    await folders.markStarted("one", []);
    await folders.close("one");
    expect(mountsBelow(data)).toEqual([]);
    expect(existsSync(workspace)).toBe(false);
    const again = createSessionFolders(data, createImageDisks(join(data, "disks"), bounds));
    expect(await again.started("one")).toEqual([]);
    expect(await readFile(join(workspace, "work"), "utf8")).toBe("kept");
    // Found open, as a killed server leaves it, it is not mounted a second time.
    expect(await again.started("one")).toEqual([]);
    expect(mountsBelow(data)).toHaveLength(1);
    await again.begin("one");
    expect(await readdir(workspace)).toEqual([]);
    await again.forget("one");
    expect([mountsBelow(data), await readdir(join(data, "disks"))]).toEqual([[], []]);
    await again.remove("one");
    expect(await again.list()).toEqual([]);
  });

  test("is closed while something looks into it still, and whole when it is opened again", async () => {
    const folders = createSessionFolders(data, disks);
    const { workspace } = await folders.begin("busy");
    await writeFile(join(workspace, "work"), "kept");
    const held = execFileSync("sh", ["-c", `cd ${workspace}; sleep 60 > /dev/null 2>&1 & echo $!`], {
      encoding: "utf8",
    });
    try {
      await folders.close("busy");
      expect(mountsBelow(data)).toEqual([]);
      await folders.started("busy");
      expect(await readFile(join(workspace, "work"), "utf8")).toBe("kept");
    } finally {
      process.kill(Number(held), "SIGKILL");
    }
  });

  test("tells whether it has room, for bytes and for files, and nothing of the worker's disk", async () => {
    const folders = createSessionFolders(data, disks);
    const { workspace } = await folders.begin("room");
    const folder = folders.diskOf("room");
    const run = (command: string): unknown => spawnSync("sh", ["-c", command], { cwd: workspace });
    expect(await disks.isFull(folder)).toBe(false);
    run("cat /dev/zero > large");
    expect(await disks.isFull(folder)).toBe(true);
    run("rm large");
    expect(await disks.isFull(folder)).toBe(false);
    run(`exec perl -e 'my $n = 0; while (open(my $f, ">", "n$n")) { $n++ }'`);
    expect(await disks.isFull(folder)).toBe(true);
    await folders.close("room");
    expect(await disks.isFull(folder)).toBe(false);
  });

  const sandbox = createBubblewrap();

  /** @returns what it said, what it was ended for, and how much was taken at most */
  async function fill(command: string): Promise<{ said: string; exceeded: Exceeded | null; taken: number }> {
    const folders = createSessionFolders(data, disks);
    const { workspace, home } = await folders.begin("full");
    await sandbox.makeWritable(workspace);
    await sandbox.makeWritable(home);
    const child = sandbox.start({
      command: "sh",
      arguments: ["-c", command],
      environment: { HOME: home },
      workspace,
      home,
      readOnly: [],
      limits: { memoryBytes: 2 ** 31, processes: 500, cpus: 2, ...bounds },
      signal: AbortSignal.timeout(hangTimeoutMs),
    });
    child.stdin.end();
    const [said] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    return { said, exceeded: child.exceeded(), taken: taken("full") };
  }

  // A quarter more has room, with what the file system itself takes.
  const most = bounds.diskBytes * 1.25 + 32 * megabyte;

  test.each([
    [
      "many files, faster than any check",
      "for i in 1 2 3 4 5 6 7 8 9; do head -c 40000000 /dev/urandom > $i & done; wait; sleep 60",
    ],
    [
      "removed files that are kept open, and hidden",
      `exec perl -e 'for my $n (1 .. 9) { open(my $f, "+>", "gone") or die; unlink "gone"; syswrite $f, "x" x 2e7; push @f, $f } syscall(157, 4, 0, 0, 0, 0); sleep 60'`,
    ],
  ])("is not outgrown by %s", async (_, command) => {
    const result = await fill(command);
    expect(result.exceeded).toBe("disk");
    expect(result.taken).toBeGreaterThan(bounds.diskBytes / 2);
    expect(result.taken).toBeLessThan(most);
  });

  test("has no more files than the bound, and a little for taking out the work", async () => {
    const many = `exec perl -e 'my $n = 0; while (open(my $f, ">", "n$n")) { $n++ } print $n; sleep 60'`;
    const { exceeded } = await fill(many);
    expect(exceeded).toBe("files");
    const names = await readdir(join(data, "sessions/full/workspace"));
    expect(names.length).toBeLessThan(bounds.files + 2_000);
    expect(names.length).toBeGreaterThan(10_000);
  });

  test("gives back what is removed", async () => {
    await fill("head -c 50000000 /dev/urandom > large; sync large");
    await createSessionFolders(data, disks).close("full");
    expect(taken("full")).toBeGreaterThan(40 * megabyte);
    const folders = createSessionFolders(data, disks);
    await folders.started("full");
    await rm(join(data, "sessions/full/workspace/large"));
    await folders.close("full");
    expect(taken("full")).toBeLessThan(20 * megabyte);
  });

  test("that can't be made says so, and what to do", async () => {
    await mkdir(join(data, "sessions"), { recursive: true });
    // In the place of the folder for images lies a file.
    await writeFile(join(data, "disks"), "");
    await expect(createSessionFolders(data, disks).begin("none")).rejects.toMatchObject({
      code: "sandbox_unavailable",
      remedy: expect.stringContaining("OFFSTAGE_SANDBOX_DISK=watch") as string,
    });
    await rm(join(data, "disks"));
  });
});
