import { chmod, mkdir, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import type { LaterFolders, SandboxRequest } from "../../src/sandboxes/sandbox.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { startWithFoldersLater } from "./later-folders.ts";

/** Folders that a running sandbox gets, beside the same folders in one that had them from its start. */
const sandbox = createBubblewrap();
const isRoot = process.getuid?.() === 0;
let data: string;
let workspace: string;
let home: string;
let mirror: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "offstage-later-"));
  workspace = join(data, "sessions/mine/workspace");
  home = join(data, "sessions/mine/home");
  mirror = join(data, "mirrors/one.git");
  for (const folder of [workspace, home]) await sandbox.makeWritable(folder);
  await mkdir(mirror, { recursive: true });
  // Every user may write there, if nothing else prevents it.
  await chmod(mirror, 0o777);
  await mkdir(join(data, "mirrors/other.git"));
  await writeFile(join(mirror, "object"), "an object");
  await writeFile(join(data, "master.key"), "a secret");
});

afterEach(async () => {
  await rm(data, { recursive: true, force: true });
  await sandbox.releaseOwner(dirname(home));
});

const request = (script: string, changes: Partial<SandboxRequest> = {}): SandboxRequest => ({
  command: "sh",
  arguments: ["-c", script],
  environment: { HOME: home },
  workspace,
  home,
  readOnly: [mirror],
  signal: AbortSignal.timeout(hangTimeoutMs),
  ...changes,
});

/** @returns what the script printed in a sandbox that got its folders later */
async function later(script: string, changes: Partial<LaterFolders> = {}): Promise<string> {
  const child = await startWithFoldersLater(sandbox, request(script), changes);
  child.stdin.end();
  const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
  return `${said}${complained}`;
}

/** The same in one that had them from its start. */
async function fromStart(script: string): Promise<string> {
  const child = sandbox.start(request(script));
  child.stdin.end();
  const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
  return `${said}${complained}`;
}

/** Each mount of a mountinfo (proc_pid_mountinfo(5)): where it is, of what, and with which flags; its ids are its own. */
function mountsOf(mountinfo: string): string[] {
  return mountinfo
    .trim()
    .split("\n")
    .map((line) => {
      const [, , , root, place, flags, ...rest] = line.split(" ");
      const kept = rest.slice(rest.indexOf("-") + 1);
      const isShared = rest.slice(0, rest.indexOf("-")).join(" ");
      return [root, place, flags, isShared, kept[0]].join(" ");
    })
    .sort();
}

describe.skipIf(!isRoot)("a running sandbox", () => {
  test("can be given folders here", async () => {
    expect(await sandbox.attachProblem()).toBeNull();
  });

  test("has afterwards the mounts of one that had its folders from its start, with the same flags, and its own idle folder", async () => {
    const mounts = mountsOf(await later("cat /proc/self/mountinfo"));
    const usual = mountsOf(await fromStart("cat /proc/self/mountinfo"));
    const idle = mounts.filter((line) => line.includes("/idle "));
    expect(idle).toHaveLength(1);
    expect(mounts.filter((line) => !line.includes("/idle "))).toEqual(usual);
    // What is compared has the folders in question, the mirror as one that can only be read.
    expect(usual.filter((line) => line.includes(` ${mirror} ro,nosuid,nodev,`))).toHaveLength(1);
    expect(usual.filter((line) => line.includes(` ${workspace} rw,nosuid,nodev,`))).toHaveLength(1);
  });

  test("sees what such a one sees of the machine, and nothing else", async () => {
    const look = `ls -a / ${data} ${data}/sessions ${data}/sessions/mine ${data}/mirrors; cat ${mirror}/object ${data}/master.key; id -u; grep -i '^Cap\\|NoNewPrivs\\|Seccomp:' /proc/self/status`;
    const seen = await later(look);
    expect(seen.replaceAll(/^idle\n/gmu, "")).toBe(await fromStart(look));
    expect(seen).toContain("an object");
    expect(seen).not.toContain("a secret");
    expect(seen).not.toContain("other.git");
  });

  test("may write where such a one may, and nowhere else", async () => {
    const write = `for place in ${workspace} ${home} ${mirror} ${data} ${data}/sessions ${data}/sessions/mine ${data}/mirrors / /usr /etc; do touch $place/mark 2> /dev/null && echo wrote $place; done`;
    const wrote = await later(write);
    expect(wrote).toBe(`wrote ${workspace}\nwrote ${home}\n`);
    expect(wrote).toBe(await fromStart(write));
  });

  test("can't change or take away what it was given", async () => {
    const change = `umount ${mirror} || mount -o remount,rw ${mirror} || touch ${mirror}/mark || mv ${workspace} ${workspace}2 || rmdir ${mirror}`;
    expect(await later(`${change}; echo still`)).toMatch(/still\n/u);
    expect(await readFile(join(mirror, "object"), "utf8")).toBe("an object");
  });

  test("keeps a folder that is renamed on the machine, with its user and its limits", async () => {
    const early = join(data, "early/one");
    const [first, idle] = [join(early, "home"), join(early, "idle")];
    await sandbox.makeWritable(first);
    await sandbox.makeWritable(idle);
    const child = sandbox.start({
      ...request(
        `echo up; read -r go; id -u; echo mine > "$HOME/file"; head -c 40000000 /dev/zero > "$HOME/large"; sleep 60`,
      ),
      environment: { HOME: first },
      workspace: idle,
      home: first,
      disk: early,
      readOnly: [],
      limits: { memoryBytes: 2 ** 30, processes: 100, diskBytes: 16 * 2 ** 20, cpus: 1 },
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    const now = join(data, "sessions/theirs");
    await rename(early, now);
    await sandbox.moveOwner(early, now);
    // The next sandbox of the folder gets the same user.
    await sandbox.makeWritable(join(now, "workspace"));
    await child.attach?.({
      mounts: [{ folder: join(now, "workspace"), place: join(now, "workspace"), isReadOnly: false }],
      home: join(now, "home"),
      disk: now,
    });
    child.stdin.write("go\n");
    const said = text(child.stdout);
    await child.exited;
    expect(child.exceeded()).toBe("disk");
    expect(await readFile(join(now, "home/file"), "utf8")).toBe("mine\n");
    expect((await said).trim()).toBe(String((await stat(join(now, "workspace"))).uid));
  });

  test("gets its folders however soon after its start they are given", async () => {
    await writeFile(join(workspace, "file"), "of the session");
    const idle = join(dirname(home), "idle");
    await sandbox.makeWritable(idle);
    for (let nth = 0; nth < 10; nth += 1) {
      const asked = request(`read -r go; cat ${workspace}/file`, { workspace: idle, readOnly: [] });
      const child = sandbox.start({ ...asked, disk: dirname(home) });
      await child.attach?.({
        mounts: [{ folder: workspace, place: workspace, isReadOnly: false }],
        home,
        disk: dirname(home),
      });
      child.stdin.end("go\n");
      const [said] = await Promise.all([text(child.stdout), child.exited]);
      expect(said).toBe("of the session");
    }
  });

  test("is given nothing if it is another than the one that was meant, or has ended", async () => {
    const elsewhere = join(data, "sessions/theirs/home");
    await sandbox.makeWritable(elsewhere);
    await expect(later("true", { home: elsewhere })).rejects.toThrow("this is not the sandbox with the home");
    const child = sandbox.start(request("true"));
    child.stdin.end();
    await child.exited;
    await expect(child.attach?.({ mounts: [], home, disk: dirname(home) })).rejects.toThrow("has ended");
  });

  test("gets no folder where a program inside has made a link", async () => {
    await symlink("/usr", join(home, "link"));
    const mounts = [{ folder: workspace, place: join(home, "link/place"), isReadOnly: false }];
    await expect(later("true", { mounts })).rejects.toThrow("is a link");
    await expect(
      later("true", { mounts: [{ folder: workspace, isReadOnly: false, place: join(home, "own/place") }] }),
    ).resolves.toBeDefined();
  });
});

test.skipIf(isRoot)("without root no running sandbox can be given folders", async () => {
  expect(await sandbox.attachProblem()).toContain("only root");
});
