import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { diskUsage } from "../../src/sandboxes/process/disk-usage.ts";
import { removeUnusedCheckouts } from "../../src/worker/checkouts/remove-unused.ts";
import { removeSession } from "../../src/worker/clones/remove-session.ts";
import { imageProblem } from "../../src/worker/disk/session-disk.ts";
import {
  anotherSecond,
  createOverlayWorld,
  gitIn,
  overlaysMissing,
  type OverlayWorld,
  type SandboxedSession,
} from "./overlay-world.ts";

const missing = await overlaysMissing();
const noImages = await imageProblem();

/** Where overlays are mounted below a folder. */
function mountsBelow(folder: string): string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("overlay ") && line.includes(` ${folder}`))
    .map((line) => line.split(" ")[1] ?? "");
}

/** What is in a folder: names, modes, owners and contents. */
function contentOf(folder: string): string {
  const list =
    "find . -printf '%P %y %m %U %l\\n' | LC_ALL=C sort; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum";
  return execFileSync("sh", ["-c", list], { cwd: folder, encoding: "utf8", maxBuffer: 2 ** 26 });
}

describe.skipIf(missing !== "")("a workspace that is an overlay", () => {
  let source = "";
  let world: OverlayWorld;

  beforeEach(async () => {
    source = await createSource();
    world = await createOverlayWorld("overlay");
  });

  afterEach(async () => {
    await world.close();
    await rm(source, { recursive: true, force: true });
  });

  /** A repository with some files at `main`. */
  async function createSource(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "offstage-source-"));
    gitIn(folder, "init", "--quiet", "--initial-branch", "main");
    for (let index = 0; index < 40; index += 1) {
      await mkdir(join(folder, `folder${index % 4}/sub`), { recursive: true });
      await writeFile(join(folder, `folder${index % 4}/sub/file${index}.txt`), `file ${index}\n`.repeat(index + 1));
    }
    await writeFile(join(folder, "run.sh"), "#!/bin/sh\necho ran\n");
    await chmod(join(folder, "run.sh"), 0o755);
    await symlink("folder0/sub/file0.txt", join(folder, "link"));
    commitAll(folder, "first");
    return folder;
  }

  function commitAll(folder: string, message: string): string {
    gitIn(folder, "add", "--all");
    gitIn(folder, "commit", "--quiet", "-m", message);
    return gitIn(folder, "rev-parse", "HEAD");
  }

  const checkouts = (): Promise<string[]> => readdir(join(world.data, "checkouts"));
  const layerOf = async (): Promise<string> => {
    const [name = ""] = await checkouts();
    return world.services.checkouts.layerOf(name);
  };
  const maintain = (limits: { days: number; maximumBytes: number }): Promise<number> => {
    const { signal } = new AbortController();
    return removeUnusedCheckouts(
      { checkouts: world.services.checkouts, logger: createLogger("error") },
      limits,
      signal,
    );
  };
  const everything = { days: 0, maximumBytes: 1 };

  /** Ends a session's attempt, and waits until its workspace is unmounted. */
  async function closed({ id }: SandboxedSession): Promise<void> {
    await world.services.folders.close(id);
    await world.services.folders.started(id);
  }

  test("is as a plain clone to its agent, and takes no more than what is changed", async () => {
    const plain = await createOverlayWorld("checkout");
    try {
      const look =
        "id -u; find . -path ./.git -prune -o -printf '%p %y %m %U %l\\n' | LC_ALL=C sort; git status -sb; git log --format=%s; git branch -a; git fsck; ./run.sh; cat link";
      const [laid, whole] = [await world.session(source), await plain.session(source)];
      const said = await laid.run(look);
      const uid = /^\d+/u.exec(said)?.[0] ?? "";
      expect(said).toBe((await whole.run(look)).replaceAll(/\b21\d{8}\b/gu, uid));
      expect(said).toContain("## offstage/work");
      expect(mountsBelow(world.data)).toEqual([dirname(laid.clone.folder)]);
      const before = await diskUsage([world.services.folders.diskOf(laid.id)], null);
      await laid.run("head -c 3000000 /dev/zero > large");
      const after = await diskUsage([world.services.folders.diskOf(laid.id)], null);
      expect(before?.files).toBeLessThan(30);
      expect((after?.bytes ?? 0) - (before?.bytes ?? 0)).toBeGreaterThan(2_900_000);
    } finally {
      await plain.close();
    }
  });

  test("has an index that knows all files as they are, so that git reads none of them", async () => {
    await world.session(source);
    await anotherSecond();
    const { run } = await world.session(source);
    const index = "stat -c %i .git/index";
    expect(await run("git ls-files --debug run.sh | sed -n 's/.*uid: \\([0-9]*\\).*/\\1/p'; id -u")).toMatch(
      /^(\d+)\n\1$/u,
    );
    const [before, after, afterTouch] = (
      await run(`${index}; git status -s; ${index}; touch run.sh; git status -s; ${index}`)
    ).split("\n");
    // git writes an index again if it had to look at a file.
    expect(after).toBe(before);
    expect(afterTouch).not.toBe(before);
    expect(await run("git fsck --strict")).toBe("");
  });

  test("begins on one checkout with all others of its commit, also if they begin at once", async () => {
    const sessions = await Promise.all([1, 2, 3].map(() => world.session(source)));
    expect(await checkouts()).toHaveLength(1);
    await sessions[0]?.run("echo mine > run.sh; rm -r folder1; echo new > new");
    expect(await sessions[1]?.run("cat run.sh; ls folder1; ls new")).toMatch(/^#!\/bin\/sh\necho ran\nsub\nls: /u);
    await removeSession(world.services, sessions[1]?.id ?? "");
    expect(await sessions[0]?.run("cat run.sh; ls")).toMatch(/^mine\nfolder0\nfolder2\n/u);
  });

  test("of a commit near one that is checked out begins there, with what differs in its own layer", async () => {
    await world.session(source);
    await writeFile(join(source, "folder0/sub/file0.txt"), "changed\n");
    gitIn(source, "rm", "--quiet", "-r", "folder3");
    await mkdir(join(source, "more/deep"), { recursive: true });
    await writeFile(join(source, "more/deep/ü \n"), "more\n");
    await chmod(join(source, "run.sh"), 0o644);
    await rm(join(source, "link"));
    await mkdir(join(source, "link"));
    await writeFile(join(source, "link/in"), "in\n");
    commitAll(source, "second");
    const plain = await createOverlayWorld("checkout");
    try {
      const look =
        "find . -path ./.git -prune -o -printf '%p %y %m %l\\n' | LC_ALL=C sort; git status -sb; git log --format=%s; find . -user 0; git ls-files -s";
      const laid = await world.session(source);
      expect(await laid.run(look)).toBe(await (await plain.session(source)).run(look));
      expect(await checkouts()).toHaveLength(1);
      // No file has to be read, since the index knows all of them.
      expect(await laid.run("git ls-files -m; git diff-files --name-only")).toBe("");
    } finally {
      await plain.close();
    }
  });

  test.each([
    [
      "that differs in very many files",
      () => Promise.all(Array.from({ length: 600 }, (_, n) => writeFile(join(source, `n${n}`), "n"))),
    ],
    ["that differs in how files are written", () => writeFile(join(source, ".gitattributes"), "*.txt text eol=crlf\n")],
  ])("of a commit %s has a checkout of its own", async (_, change) => {
    await world.session(source);
    await change();
    commitAll(source, "second");
    const { run } = await world.session(source);
    expect(await run("git status -s; git log -1 --format=%s")).toBe("second");
    expect(await checkouts()).toHaveLength(2);
  });

  test("has several repositories, those with submodules too", async () => {
    const other = await createSource();
    const third = await createSource();
    try {
      gitIn(other, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", third, "inner");
      commitAll(other, "submodule");
      const { run, id } = await world.session(source, other);
      expect(mountsBelow(world.data)).toEqual([world.services.folders.pathsOf(id).workspace]);
      expect(
        await run("ls ..; cd ../clone2 && git status -sb && ls inner && mv ../clone/folder0 moved && ls moved"),
      ).toBe("clone\nclone2\n## offstage/work\nsub");
    } finally {
      await rm(other, { recursive: true, force: true });
      await rm(third, { recursive: true, force: true });
    }
  });

  test("is unmounted with its session's end, and has everything when it is opened again", async () => {
    const session = await world.session(source);
    await session.run(
      "echo more > more; mv folder0 moved; rm -r folder1; mkdir folder1; git add --all; git commit -qm done",
      {
        ...identity,
      },
    );
    const look = "git log --format=%s; git status -s; ls; ls moved folder1; cat more moved/sub/file0.txt";
    const before = await session.run(look);
    await world.services.folders.close(session.id);
    const again = world.restarted();
    await world.services.mounts.start();
    await world.services.mounts.stop();
    expect(mountsBelow(world.data)).toEqual([]);
    expect(await readdir(session.clone.folder).catch(() => "nothing")).toBe("nothing");
    const opened = await again.open(session);
    expect(await opened?.run(look)).toBe(before);
    expect(before).toContain("done\nfirst");
    // Found mounted, as a server that was killed leaves it, it is not mounted a second time.
    await world.restarted().open(session);
    expect(mountsBelow(world.data)).toHaveLength(1);
    await again.services.mounts.start();
    expect(mountsBelow(world.data)).toEqual([]);
  });

  test.each([
    ["while it is unmounted", 0],
    ["while it is mounted", 1],
  ])("whose checkout was removed %s gets an equal one", async (_, mounts) => {
    const session = await world.session(source);
    await session.run("echo more >> run.sh; mv folder0 moved; rm -r folder1; chmod +x folder2/sub/file2.txt");
    const look =
      "find . -path ./.git -prune -o -printf '%p %y %m %l\\n' | LC_ALL=C sort; git status -s; cat run.sh moved/sub/*";
    const before = await session.run(look);
    if (mounts === 0) await closed(session);
    expect(mountsBelow(world.data)).toHaveLength(mounts);
    const [name = ""] = await checkouts();
    await rm(join(world.data, "checkouts", name), { recursive: true });
    const opened = await world.open(session);
    expect(await opened?.run(look)).toBe(before);
    expect(await checkouts()).toEqual([name]);
  });

  test("is lost with its checkout and its mirror, and then nothing of it is used", async () => {
    const session = await world.session(source);
    await closed(session);
    const [name = ""] = await checkouts();
    await rm(join(world.data, "checkouts", name), { recursive: true });
    // The remote has another history by now.
    gitIn(source, "checkout", "--quiet", "--orphan", "other");
    commitAll(source, "other");
    gitIn(source, "branch", "--quiet", "-D", "main");
    gitIn(source, "branch", "--quiet", "-m", "main");
    gitIn(source, "reflog", "expire", "--expire=now", "--all");
    gitIn(source, "gc", "--quiet", "--prune=now");
    await rm(session.clone.mirror.path, { recursive: true });
    expect(await world.open(session)).toBeNull();
    expect(mountsBelow(world.data)).toEqual([]);
  });

  test("is removed with its session, and nothing of the checkout with it", async () => {
    const session = await world.session(source);
    const before = contentOf(await layerOf());
    await world.services.folders.forget(session.id);
    expect(mountsBelow(world.data)).toEqual([]);
    const another = await world.session(source);
    await removeSession(world.services, another.id);
    expect(await world.services.folders.list()).toEqual([`removed-${session.id}`]);
    await removeSession(world.services, session.id);
    expect(await world.services.folders.list()).toEqual([]);
    expect(contentOf(await layerOf())).toBe(before);
  });

  test("keeps its checkout from being removed while it is mounted; others go, the least recently used first", async () => {
    const first = await world.session(source);
    const [used = ""] = await checkouts();
    for (const [message, days] of [
      ["second", 10],
      ["third", 8],
    ] as const) {
      const before = await checkouts();
      await writeFile(join(source, ".gitattributes"), `# ${message}\n`);
      commitAll(source, message);
      await removeSession(world.services, (await world.session(source)).id);
      const made = (await checkouts()).find((name) => !before.includes(name)) ?? "";
      const then = new Date(Date.now() - days * 24 * 60 * 60 * 1_000);
      await utimes(join(world.data, "checkouts", made, "used"), then, then);
    }
    await mkdir(join(world.data, "checkouts/removed-left"));
    expect(await maintain({ days: 30, maximumBytes: 0 })).toBe(0);
    expect(await checkouts()).toHaveLength(3);
    expect(await maintain({ days: 9, maximumBytes: 0 })).toBe(1);
    expect(await maintain(everything)).toBe(1);
    expect(await checkouts()).toEqual([used]);
    expect(await first.run("git status -s; cat run.sh")).toContain("echo ran");
    await closed(first);
    expect(await maintain(everything)).toBe(1);
    expect(await (await world.open(first))?.run("git status -s; cat run.sh")).toContain("echo ran");
  });

  test("of another commit removes unused checkouts, if all are more than they may be", async () => {
    const bounded = await createOverlayWorld("overlay", { checkoutsBytes: 1_000_000 });
    try {
      const names = (): Promise<string[]> => readdir(join(bounded.data, "checkouts"));
      await removeSession(bounded.services, (await bounded.session(source)).id);
      const [first = ""] = await names();
      await writeFile(join(source, "large"), Buffer.alloc(900_000, "x"));
      await writeFile(join(source, ".gitattributes"), "# other\n");
      commitAll(source, "second");
      const { run } = await bounded.session(source);
      await expect.poll(names).not.toContain(first);
      expect(await run("git status -s; wc -c < large")).toBe("900000");
    } finally {
      await bounded.close();
    }
  });

  test("begins on a checkout that is made again if the machine was started anew before it was on the disk", async () => {
    const { id } = await world.session(source);
    const [name = ""] = await checkouts();
    const record = join(world.data, "checkouts", name, "checkout.json");
    await expect.poll(() => existsSync(join(dirname(record), "durable"))).toBe(true);
    await removeSession(world.services, id);
    await writeFile(
      record,
      JSON.stringify({ ...(JSON.parse(readFileSync(record, "utf8")) as object), boot: "before" }),
    );
    await writeFile(join(await layerOf(), "clone/run.sh"), "");
    // On the disk by then, it is as it was.
    expect(await (await world.session(source)).run("git status -s")).toBe("M run.sh");
    for (const each of await world.services.folders.list()) await removeSession(world.services, each);
    await rm(join(dirname(record), "durable"));
    expect(await (await world.session(source)).run("git status -s; cat run.sh")).toContain("echo ran");
    expect(await checkouts()).toEqual([name]);
  });

  test("leaves a checkout that was half made when the worker was killed out of account", async () => {
    await mkdir(join(world.data, "checkouts/.new-left/layer/clone"), { recursive: true });
    const { run } = await world.session(source);
    expect(await run("git status -s; cat run.sh")).toContain("echo ran");
    expect(await maintain({ days: 30, maximumBytes: 0 })).toBe(0);
    expect(existsSync(join(world.data, "checkouts/.new-left"))).toBe(true);
    const then = new Date(Date.now() - 3 * 24 * 60 * 60 * 1_000);
    await utimes(join(world.data, "checkouts/.new-left"), then, then);
    await maintain({ days: 30, maximumBytes: 0 });
    expect(existsSync(join(world.data, "checkouts/.new-left"))).toBe(false);
  });

  test("counts a removed file that is open, by whom it is, as disk", async () => {
    const { id, run } = await world.session(source);
    const ended = run(
      "exec 3> gone; rm gone; head -c 5000000 /dev/zero >&3; : > ready; while [ ! -e done ]; do sleep 0.1; done",
    );
    const { workspace, home } = world.services.folders.pathsOf(id);
    await expect.poll(() => existsSync(join(workspace, "clone/ready"))).toBe(true);
    const used = await diskUsage([world.services.folders.diskOf(id)], { uid: lstatSync(home).uid });
    const named = await diskUsage([world.services.folders.diskOf(id)], null);
    await writeFile(join(workspace, "clone/done"), "");
    await ended;
    expect((used?.bytes ?? 0) - (named?.bytes ?? 0)).toBeGreaterThan(4_900_000);
    expect(used?.sharedBytes).toBeLessThan(1_000_000);
  });

  const identity = {
    GIT_AUTHOR_NAME: "A",
    GIT_AUTHOR_EMAIL: "a@example",
    GIT_COMMITTER_NAME: "A",
    GIT_COMMITTER_EMAIL: "a@example",
  };

  describe("behaves as a plain folder", () => {
    const build = `printf 'out: in\\n\\techo built >> log; cp in out\\n' > Makefile; echo 1 > in; make -s; make -s; sleep 0.01; echo 2 > in; make -s; cat log out`;
    test.each([
      [
        "modes",
        "chmod 600 run.sh; chmod -R go-rwx folder0; stat -c '%a %n' run.sh folder0 folder0/sub/file0.txt; chmod 444 run.sh; (echo x >> run.sh) 2>&1 | grep -c denied; git status -s",
      ],
      [
        "renamed folders",
        "mv folder0 moved; mv moved/sub moved/other; mkdir folder0; ls folder0 moved moved/other | head -5; mv folder0 moved/inner; git status -s | head -3; git mv folder1 folder9; git status -s | tail -2",
      ],
      [
        "renames over what is there",
        "mv folder0/sub/file0.txt folder1/sub/file1.txt; cat folder1/sub/file1.txt; ls folder0/sub | head -2; mv run.sh link; cat link",
      ],
      [
        "hard links",
        "ln run.sh hard; echo more >> hard; tail -1 run.sh; stat -c %h run.sh hard; rm run.sh; stat -c %h hard; git status -s",
      ],
      [
        "symbolic links",
        "cat link; ln -sfn folder1 link; ls link; rm link; ln -s nowhere link; readlink link; git status -s",
      ],
      [
        "what is removed and made again",
        "rm -r folder0; ls folder0 2>&1; mkdir -p folder0/sub; echo new > folder0/sub/file0.txt; ls folder0/sub; rm -rf * ; ls -A; git checkout -q .; git status -s; ls",
      ],
      [
        "writes in place",
        `perl -e 'open F, "+<", "run.sh"; seek F, 2, 0; print F "X"; close F; open F, ">>", "link"; print F "y"; truncate "folder1/sub/file1.txt", 3'; cat run.sh link folder1/sub/file1.txt; git status -s`,
      ],
      [
        "what is open while it is written for the first time",
        `exec 3>> run.sh 4< run.sh; echo more >&3; cat run.sh | tail -1; exec 3>&- 4<&-`,
      ],
      [
        "files of equal size and time that change places",
        "touch -d '2020-01-01' a b; echo 1 > a; echo 2 > b; cp -p folder0/sub/file0.txt x; touch -r folder1/sub/file1.txt -c x; git add a b; mv a c; mv b a; mv c b; git status -s",
      ],
      [
        "equal sizes and times in what was checked out",
        "echo aaaa > p; echo bbbb > q; git add p q; git commit -qm pq; touch -d 2020-01-01 p q; git status -s; mv p r; mv q p; mv r q; git status -s",
      ],
      ["locks", `exec 3>> run.sh; flock -n 3 && echo locked; (exec 4>> run.sh; flock -n 4 || echo taken)`],
      [
        "sparse files and sizes",
        "truncate -s 10M sparse; stat -c '%s' sparse; du -k sparse | cut -f1; head -c 10 /dev/zero >> sparse; stat -c %s sparse",
      ],
      [
        "times",
        "touch -d '2020-02-03 04:05:06' run.sh; stat -c %Y run.sh; cp -p run.sh kept; stat -c %Y kept; find . -maxdepth 1 -newer kept -name run.sh; mkdir t; tar -cf - run.sh folder0 | tar -xf - -C t; stat -c %Y t/run.sh",
      ],
      [
        "extended attributes",
        `perl -e 'my $n = { x86_64 => [188, 191], aarch64 => [5, 8] }->{(require POSIX && POSIX::uname())[4]}; my ($p, $k, $v) = ("run.sh", "user.kept", "value"); print syscall($n->[0], $p, $k, $v, 5, 0), "\\n"; my $b = "\\0" x 9; print syscall($n->[1], $p, $k, $b, 9), " $b\n"' | tr -d '\\0'`,
      ],
      [
        "names that are hard",
        `touch -- '-n' 'a b' "$(printf 'two\\nlines')" '*'; ls -A | wc -l; git add --all; git commit -qm names; git status -s; rm -- '-n' 'a b'; git status -s`,
      ],
      ["make", build],
      [
        "git's own work",
        "git checkout -qb other; echo 1 > run.sh; git commit -qam 1; git checkout -q offstage/work; git merge -q other; git stash list; echo 2 > run.sh; git stash -q; git stash pop -q; git status -s; git gc -q; git fsck; git worktree add -q ../wt HEAD~1; ls ../wt | head -2; git clone -q . ../copy; git -C ../copy log --format=%s; git clean -fdxq; git reset -q --hard; git status -s",
      ],
      [
        "packages that npm links and installs",
        `mkdir -p packages/a packages/b; echo '{"name":"a","version":"1.0.0","bin":"x.js"}' > packages/a/package.json; echo '#!/usr/bin/env node' > packages/a/x.js; echo '{"name":"r","version":"1.0.0","workspaces":["packages/a"],"dependencies":{"b":"file:packages/b"}}' > package.json; echo '{"name":"b","version":"2.0.0"}' > packages/b/package.json; npm install --offline --no-audit --no-fund --loglevel=error; ls -A node_modules node_modules/.bin; npm ci --offline --no-audit --no-fund --loglevel=error; readlink node_modules/a; rm -rf node_modules; ls`,
      ],
      [
        "a watcher of files",
        `node -e 'const fs = require("fs"); const w = fs.watch("run.sh", (e) => { console.log(e); w.close(); }); setTimeout(() => fs.appendFileSync("run.sh", "x"), 50)'`,
      ],
      [
        "a whole clone that is thrown away",
        `cd ..; rm -rf clone; ls -A; mkdir clone; echo again > clone/x; mv clone renamed; ls; mv renamed clone; cat clone/x`,
      ],
    ])("for %s", async (_, program) => {
      const plain = await createOverlayWorld("checkout");
      try {
        const [laid, whole] = [await world.session(source), await plain.session(source)];
        const more = { ...identity, GIT_AUTHOR_DATE: "@1700000000 +0000", GIT_COMMITTER_DATE: "@1700000000 +0000" };
        const run = (session: SandboxedSession): Promise<string> => session.run(program, more);
        const said = await run(laid);
        const comparable = (text: string, data: string): string =>
          text.replaceAll(data, "").replaceAll(/ in \d+m?s$/gmu, "");
        expect(comparable(said, world.data)).toBe(comparable(await run(whole), plain.data));
        expect(said).not.toBe("");
      } finally {
        await plain.close();
      }
    });
  });

  describe.skipIf(noImages !== null)("on a disk of the session's own", () => {
    test("is mounted and unmounted with that, and its files are the disk's", async () => {
      const own = await createOverlayWorld("overlay", { disks: "image" });
      try {
        const session = await own.session(source);
        expect(
          await session.run(
            "git status -s; stat -c %d run.sh folder0 | sort -u | wc -l; echo more >> run.sh; git status -s",
          ),
        ).toBe("1\n M run.sh");
        const look = "tail -1 run.sh; git status -s";
        await own.services.folders.close(session.id);
        const again = own.restarted();
        await own.services.mounts.start();
        expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(own.data);
        const opened = await again.open(session);
        expect(await opened?.run(look)).toBe("more\n M run.sh");
        await removeSession(again.services, session.id);
        expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(own.data);
      } finally {
        await own.close();
      }
    });
  });
});
