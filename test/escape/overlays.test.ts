import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listChanges } from "../../src/worker/checkouts/changes.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import {
  createOverlayWorld,
  gitIn,
  overlaysMissing,
  type OverlayWorld,
  type SandboxedSession,
} from "../worker/overlay-world.ts";

/**
 * What an agent may try by the overlay that its workspace is: to change the checkout that others begin on, to see
 * others' changes, or to attack root, which reads its layer from outside. Each attempt has a control that shows that it
 * can succeed.
 */
const missing = await overlaysMissing();

describe.skipIf(missing !== "")(
  "an agent in a workspace that is an overlay",
  () => {
    let source = "";
    let outside = "";
    let world: OverlayWorld;
    let session: SandboxedSession;
    let neighbour: SandboxedSession;
    let layer = "";

    beforeAll(async () => {
      source = await mkdtemp(join(tmpdir(), "offstage-source-"));
      outside = await mkdtemp(join(tmpdir(), "offstage-outside-"));
      gitIn(source, "init", "--quiet", "--initial-branch", "main");
      await writeFile(join(source, "file"), "of the checkout\n");
      await mkdir(join(source, "folder"));
      await writeFile(join(source, "folder/inner"), "inner\n");
      gitIn(source, "add", "--all");
      gitIn(source, "commit", "--quiet", "-m", "first");
      world = await createOverlayWorld("overlay");
      session = await world.session(source);
      neighbour = await world.session(source);
      const [name = ""] = await readdir(join(world.data, "checkouts"));
      layer = world.services.checkouts.layerOf(name);
      await neighbour.run("echo secret-of-the-neighbour > theirs; echo secret-of-the-neighbour >> file");
    });

    afterAll(async () => {
      await world?.close();
      for (const folder of [source, outside]) await rm(folder, { recursive: true, force: true });
    });

    const changesOf = ({ id }: SandboxedSession): string => join(world.data, "sessions", id, "changes/clone");
    const uidOf = ({ id }: SandboxedSession): number => lstatSync(join(world.data, "sessions", id, "home")).uid;
    const hashOf = (folder: string): string => {
      const list =
        "find . -printf '%P %y %m %U %G %T@ %C@\\n' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | xargs cat";
      return createHash("sha256")
        .update(execFileSync("sh", ["-c", list], { cwd: folder }))
        .digest("hex");
    };

    it("changes its own layer and never the checkout", async () => {
      const before = hashOf(layer);
      const attempts = [
        "for f in file folder/inner .git/config .git/index .git/objects/info/alternates; do echo x >> $f; chmod 777 $f; touch $f; done",
        'perl -e \'open F, "+<", "file"; seek F, 0, 0; print F "OVERWRITTEN"\'',
        "rm -rf folder; mv .git/refs .git/renamed; ln file hard; echo y >> hard; truncate -s 0 file",
        "mount -o remount,rw / ; mount -t tmpfs none .; umount .; chown 0:0 file; chmod u+s file; setfattr -n user.x -v y file",
        "echo z > ../../changes/clone/file; echo z > ../overlay/x; rm -rf ../*",
      ];
      for (const attempt of attempts) await session.run(attempt);
      expect(hashOf(layer)).toBe(before);
      expect(await (await world.session(source)).run("cat file; git status -s")).toBe("of the checkout");
      // The control: a write there changes what the next session begins on.
      await writeFile(join(layer, "clone/file"), "of the attacker\n");
      expect(await (await world.session(source)).run("cat file")).toBe("of the attacker");
      await writeFile(join(layer, "clone/file"), "of the checkout\n");
      session = await world.session(source);
    });

    it("sees nothing of others' changes, nor the path of its own layer", async () => {
      const look = `grep -rs secret-of-the-neighbour / --include=theirs --include=file; ls -d ${changesOf(neighbour)} ${changesOf(session)} ${layer}`;
      const said = await session.run(look);
      const mounts = await session.run("cat /proc/self/mountinfo");
      expect(said).not.toContain("secret-of-the-neighbour");
      expect(said.match(/cannot access/gu)).toHaveLength(3);
      expect(mounts).not.toContain("checkouts/");
      expect(mounts).toContain(" overlay ");
      // The control: the same search finds it where it is.
      const control = spawnSync("sh", ["-c", `grep -rs secret-of-the-neighbour ${changesOf(neighbour)}`], {
        encoding: "utf8",
      });
      expect(control.stdout).toContain("secret-of-the-neighbour");
    });

    it("gains nothing by a program of root's with the right to be root, nor by a device, even if one were in its layer", async () => {
      const inside = changesOf(session);
      await session.run("mkdir own; echo > own/touched");
      for (const folder of [join(inside, "own"), outside]) {
        await copyFile("/usr/bin/id", join(folder, "root-id"));
        await chmod(join(folder, "root-id"), 0o4755);
        execFileSync("mknod", ["-m", "666", join(folder, "zero"), "c", "1", "5"]);
      }
      await chmod(outside, 0o755);
      const asAgent = (...command: string[]): string => {
        const uid = String(uidOf(session));
        const dropped = ["--reuid", uid, "--regid", uid, "--clear-groups", "--", ...command];
        const { stdout, stderr } = spawnSync("setpriv", dropped, { encoding: "utf8", cwd: "/" });
        return `${stdout}${stderr}`.trim();
      };
      // The control: outside of the mount both work for the same user.
      expect(asAgent(join(outside, "root-id"), "-u")).toBe("0");
      expect(asAgent("head", "-c", "3", join(outside, "zero"))).toBe("\0\0\0");
      expect(await session.run("./own/root-id -u")).toBe(String(uidOf(session)));
      expect(await session.run("head -c 3 own/zero")).toMatch(/Permission denied/u);
      // Nor at the mount on the host, which root may look into.
      const { workspace } = world.services.folders.pathsOf(session.id);
      const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
      expect(mounts.find((line) => line.includes(` ${workspace} `))).toMatch(/ rw,nosuid,nodev,/u);
    });

    it("makes no device, and nothing that an overlay takes for a deleted name", async () => {
      const said = await session.run("mknod gone c 0 0; mknod null c 1 3; ls gone null; ls file");
      expect(said.match(/Operation not permitted/gu)).toHaveLength(2);
      expect(said).toContain("file");
      // The control: in a folder that is no overlay any user may make the first.
      const uid = uidOf(session);
      await mkdir(join(outside, "open"), { recursive: true });
      await chmod(join(outside, "open"), 0o777);
      execFileSync("mknod", [join(outside, "open/gone"), "c", "0", "0"], { uid, gid: uid });
      expect(lstatSync(join(outside, "open/gone")).isCharacterDevice()).toBe(true);
    });

    it("does not lead the listing of its changes elsewhere, also while it exchanges a folder and a link", async () => {
      for (const name of ["secret-one", "secret-two"]) await writeFile(join(outside, name), "");
      await session.run("mkdir -p folder/swapped/deep; echo > folder/swapped/deep/mine; echo > folder/x");
      const { checkouts } = world.services;
      const inside = changesOf(session);
      const stop = join(world.data, "stop");
      const exchanging = session.run(
        `n=0; while [ ! -e stop ]; do mv folder away; ln -s ${outside} folder; rm folder; mv away folder; n=$((n+1)); done; echo $n`,
      );
      const seen = new Set<string>();
      for (let round = 0; round < 150; round += 1) {
        const changes = await listChanges(checkouts, session.clone.folder);
        for (const entry of changes?.list.toString().split("\0") ?? []) seen.add(entry);
      }
      await writeFile(join(session.clone.folder, "stop"), "");
      expect(Number(await exchanging)).toBeGreaterThan(100);
      expect(existsSync(stop)).toBe(false);
      expect([...seen].filter((entry) => entry.includes("secret"))).toEqual([]);
      expect([...seen].some((entry) => /^[fd]folder/u.test(entry))).toBe(true);
      // The control: a list that follows links has them.
      await rename(join(inside, "folder"), join(inside, "kept"));
      await symlink(outside, join(inside, "folder"));
      const followed = execFileSync("find", ["-L", inside, "-name", "secret-*"], { encoding: "utf8" });
      expect(followed).toContain("secret-one");
    });

    it.each([
      ["nothing", "rm -rf $d"],
      ["a link that points out of it", "rm -rf $d; ln -s $outside $d"],
      ["another folder", "mv $d $d-before; mkdir $d; echo > $d/new"],
    ])("has no list of changes once %s is in the clone's place", async (_, replace) => {
      const { checkouts } = world.services;
      const other = await world.session(source);
      await writeFile(join(outside, "secret-one"), "");
      // The control: a changed file is listed.
      await other.run("echo more >> file");
      expect((await listChanges(checkouts, other.clone.folder))?.list.toString()).toBe("ffile\0");
      await other.run(`outside=${outside}; d=$PWD; cd ..; ${replace}`);
      expect(await listChanges(checkouts, other.clone.folder)).toBeNull();
    });
  },
  hangTimeoutMs,
);
