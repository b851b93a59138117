import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, lstatSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { lutimes, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import { giveToSandbox } from "../../src/sandboxes/process/ownership.ts";
import { UidClaims, defaultUids, type UidRange } from "../../src/sandboxes/process/uids.ts";
import { makeClones } from "../../src/worker/clones/clones.ts";
import { removeSession } from "../../src/worker/clones/remove-session.ts";
import { createSharedCheckouts } from "../../src/worker/checkouts/shared-checkouts.ts";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { waitFor } from "../wait-for.ts";

const range: UidRange = { first: 2_050_000_000, last: 2_050_000_999 };
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-uids-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

/** Another server's view of the same machine: nothing is shared but the folder. */
const server = (uids: UidRange = range): UidClaims => new UidClaims(uids, [join(folder, "claims")]);

const session = (name: string): string => join(folder, "sessions", name);

const ownerOf = (path: string): number => lstatSync(path).uid;

async function make(name: string, claims: UidClaims): Promise<number> {
  await giveToSandbox(join(session(name), "workspace"), claims);
  await giveToSandbox(join(session(name), "home"), claims);
  expect(ownerOf(join(session(name), "workspace"))).toBe(ownerOf(join(session(name), "home")));
  return ownerOf(join(session(name), "home"));
}

it("a range that this server's user namespace does not have is not used", () => {
  expect(defaultUids("         0          0 4294967295\n")).toEqual({ first: 2_100_000_000, last: 2_100_999_999 });
  expect(defaultUids("         0     100000      65536\n")).toEqual({ first: 64_748, last: 65_247 });
  expect(defaultUids("         0       1000          1\n         1     100000      65536\n").last).toBeLessThan(65_536);
});

// Only root can give files away.
describe.skipIf(process.getuid?.() !== 0)("under root, each session's folders", () => {
  it("belong to a user of its own, whichever server of the machine made them", async () => {
    const narrow = { first: range.first, last: range.first + 19 };
    const servers = [server(narrow), server(narrow), server(narrow)];
    const owners = await Promise.all(
      Array.from({ length: 18 }, (_, index) => make(`one-${index}`, servers[index % 3] ?? server(narrow))),
    );
    expect(new Set(owners).size).toBe(18);
    for (const uid of owners) expect(uid).toBeGreaterThanOrEqual(narrow.first);
    for (const uid of owners) expect(uid).toBeLessThanOrEqual(narrow.last);
  });

  it("keep their user over restarts, and are not gone through again", async () => {
    const before = await make("kept", server());
    const file = join(session("kept"), "home/root");
    // A walk through all of it would change the owner of this too.
    await writeFile(file, "x");
    expect(await make("kept", server())).toBe(before);
    expect(ownerOf(file)).toBe(0);
  });

  it("get another if theirs was taken while the machine's claims were gone, links unfollowed", async () => {
    const before = await make("slept", server());
    await rm(join(folder, "claims"), { recursive: true });
    const outside = join(folder, "outside");
    await writeFile(outside, "x");
    symlinkSync(outside, join(session("slept"), "home/link"));
    await mkdir(join(folder, "claims"), { mode: 0o700 });
    symlinkSync(session("other"), join(folder, "claims", String(before)));
    const after = await make("slept", server());
    expect(after).not.toBe(before);
    expect(ownerOf(join(session("slept"), "home/link"))).toBe(after);
    expect(ownerOf(outside)).toBe(0);
  });

  it("of a version that had one user for all are given to their own", async () => {
    for (const name of ["workspace", "home"]) {
      await mkdir(join(session("old"), name, "deep"), { recursive: true });
      execFileSync("chown", ["-R", "64748:64748", join(session("old"), name)]);
    }
    const uid = await make("old", server());
    expect(uid).toBeGreaterThanOrEqual(range.first);
    expect(ownerOf(join(session("old"), "home/deep"))).toBe(uid);
  });

  it("give their user back when they are gone, and not before", async () => {
    const two = { first: range.first, last: range.first + 1 };
    await make("first", server(two));
    const second = await make("second", server(two));
    const refusal = { code: "sandbox_unavailable", remedy: expect.stringContaining("OFFSTAGE_SANDBOX_UIDS") as string };
    await expect(make("third", server(two))).rejects.toMatchObject(refusal);
    const longAgo = new Date(Date.now() - 2 * 60 * 60_000);
    for (const name of readdirSync(join(folder, "claims")))
      await lutimes(join(folder, "claims", name), longAgo, longAgo);
    await expect(make("third", server(two))).rejects.toMatchObject(refusal);
    await rm(session("second"), { recursive: true });
    expect(await make("third", server(two))).toBe(second);
    expect(readlinkSync(join(folder, "claims", String(second)))).toBe(session("third"));
  });

  describe("while a process of theirs lives", () => {
    const one = { first: range.first, last: range.first };
    const refusal = { code: "sandbox_unavailable" };
    let child: ChildProcess;

    /** As what an engine did not end, or a server that was killed left. */
    async function begin(uid: number, program: string): Promise<void> {
      child = spawn("perl", ["-e", `$| = 1; ${program}`], {
        uid,
        gid: uid,
        cwd: "/",
        stdio: ["ignore", "pipe", "ignore"],
        detached: true,
      });
      await once(child.stdout ?? child, "data");
    }

    async function endAll(uid: number): Promise<void> {
      // As that user, so that none of its processes can begin another meanwhile (kill(2) of -1).
      execFileSync("perl", ["-e", "kill 'KILL', -1"], { uid, gid: uid });
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      await waitFor(() => isFree(uid), "nothing of the user is left");
    }

    const isFree = (uid: number): boolean =>
      !readdirSync("/proc").some((pid) => /^\d+$/u.test(pid) && statusOf(pid).includes(`Uid:\t${uid}\t`));
    const statusOf = (pid: string): string => {
      try {
        return readFileSync(`/proc/${pid}/status`, "utf8");
      } catch {
        return "";
      }
    };

    it.each([
      ["sleeps", `print "on"; sleep 60 while 1`],
      ["hides what it has", `syscall(157, 4, 0, 0, 0, 0); print "on"; sleep 60 while 1`],
      ["is another one each moment", `print "on"; while (1) { fork and exit }`],
    ])("keep their user from others, though it was given back: one that %s", async (_, program) => {
      const claims = server(one);
      const uid = await make("first", claims);
      await begin(uid, program);
      try {
        await rm(join(folder, "sessions"), { recursive: true });
        await claims.giveBack(session("first"));
        await expect(make("second", server(one))).rejects.toMatchObject(refusal);
        // Nor if nothing is known of it any more, as after a server that lost its folder of claims.
        await rm(join(folder, "claims"), { recursive: true });
        await expect(make("second", server(one))).rejects.toMatchObject(refusal);
        expect(readdirSync(join(folder, "claims"))).toEqual([]);
      } finally {
        await endAll(uid);
      }
      expect(await make("second", server(one))).toBe(uid);
    });
  });

  it("give their user back as soon as they are gone, with those of what lay in them", async () => {
    const claims = server();
    await make("done", claims);
    await make("done/setups/a", claims);
    await make("done-too", claims);
    expect(readdirSync(join(folder, "claims"))).toHaveLength(3);
    await claims.giveBack(join(session("done"), "setups"));
    expect(readdirSync(join(folder, "claims"))).toHaveLength(2);
    await claims.giveBack(session("done"));
    const [left = ""] = readdirSync(join(folder, "claims"));
    expect(readlinkSync(join(folder, "claims", left))).toBe(session("done-too"));
    expect(readdirSync(join(folder, "claims"))).toHaveLength(1);
  });

  it("give it back with a session, after real processes of it", async () => {
    // Claimed where all servers of the machine do: the range is this test's alone.
    const own = {
      first: 2_050_010_000 + (process.pid % 10_000) * 10,
      last: 2_050_010_009 + (process.pid % 10_000) * 10,
    };
    const inUse = (): number[] =>
      readdirSync("/run/offstage-uids")
        .map(Number)
        .filter((uid) => uid >= own.first && uid <= own.last);
    const sandbox = createBubblewrap(own);
    expect(await sandbox.check()).toBeNull();
    expect(inUse()).toEqual([]);
    const folders = createSessionFolders(folder, undefined, sandbox);
    const mirrors = createMirrors({ dataDirectory: folder, allowLocalRepositories: false });
    const checkouts = createSharedCheckouts({ dataDirectory: folder, asked: "checkout", sandbox });
    const services = { folders, mirrors, checkouts, sandbox, limits: readConfig({}).limits };
    const { signal } = new AbortController();
    const request = { sessionId: "real", sources: [], progress: () => undefined, signal };
    await makeClones(services, request, null);
    const { workspace, home } = folders.pathsOf("real");
    const setup = join(folder, "sessions/real/setups/one/home");
    await sandbox.makeWritable(setup);
    expect(inUse()).toHaveLength(2);
    const child = sandbox.start({
      command: "sleep",
      arguments: ["0"],
      environment: {},
      workspace,
      home,
      readOnly: [],
      signal,
    });
    child.stdin.end();
    expect((await child.exited).code).toBe(0);
    await folders.endSetups("real");
    expect(inUse()).toEqual([ownerOf(home)]);
    await removeSession(services, "real");
    expect(inUse()).toEqual([]);
  });

  it("of a server that was killed are found by the next, if they are gone", async () => {
    await make("left", server());
    await make("kept", server());
    await rm(session("left"), { recursive: true });
    const longAgo = new Date(Date.now() - 2 * 60 * 60_000);
    const names = (): string[] => readdirSync(join(folder, "claims"));
    for (const name of names()) await lutimes(join(folder, "claims", name), longAgo, longAgo);
    const { sweeper } = server();
    await sweeper.start();
    await waitFor(() => names().length === 1, "the claim of what is gone is removed");
    await sweeper.stop();
    expect(names().map((name) => readlinkSync(join(folder, "claims", name)))).toEqual([session("kept")]);
  });

  it("are claimed in a folder that no other user could have made", async () => {
    const foreign = join(folder, "foreign");
    await mkdir(foreign, { mode: 0o777 });
    chownSync(foreign, 65_533, 65_533);
    const claims = new UidClaims(range, [foreign, join(folder, "own")]);
    await make("safe", claims);
    expect(readdirSync(foreign)).toEqual([]);
    expect(readdirSync(join(folder, "own"))).toHaveLength(1);
  });
});

describe.skipIf(process.getuid?.() !== 0)(
  "under root, what one session takes of what the kernel counts for a user",
  () => {
    const sandbox = createBubblewrap(range);

    function start(name: string, script: string) {
      const child = sandbox.start({
        command: "perl",
        arguments: ["-e", script],
        environment: {},
        workspace: join(session(name), "workspace"),
        home: join(session(name), "home"),
        readOnly: [],
        signal: AbortSignal.timeout(hangTimeoutMs),
      });
      child.stdin.end();
      return child;
    }

    const number = process.arch === "x64" ? { inotify: "253" } : { inotify: "26, 0" };

    it("is not taken from another: watchers of files", async () => {
      for (const name of ["a", "b"]) {
        await sandbox.makeWritable(join(session(name), "workspace"));
        await sandbox.makeWritable(join(session(name), "home"));
      }
      const exhaust = `$| = 1; my $n = 0; $n++ while syscall(${number.inotify}) >= 0; print "$n then ", $!{EMFILE} ? "EMFILE" : $!, "\\n"; sleep 60`;
      const a = start("a", exhaust);
      const said = await new Promise<string>((resolve) =>
        a.stdout.once("data", (chunk: Buffer) => resolve(String(chunk))),
      );
      // It really took all that its user may have.
      expect(said).toMatch(/^\d{2,} then EMFILE$/mu);
      const tryOnce = `print syscall(${number.inotify}) >= 0 ? "has one" : "none: $!"`;
      // A second sandbox of the same session has none left; another session's has.
      const [same, other] = [start("a", tryOnce), start("b", tryOnce)];
      // Read at the same time: unread output of a program that ended is dropped.
      const [ofSame, ofOther] = await Promise.all([text(same.stdout), text(other.stdout)]);
      expect(ofSame).toMatch(/^none: Too many open files/u);
      expect(ofOther).toBe("has one");
      a.kill();
      await Promise.all([a.exited, same.exited, other.exited]);
    });

    it("nor are its files read by another, were they in sight", async () => {
      for (const name of ["a", "b"]) {
        await sandbox.makeWritable(join(session(name), "workspace"));
        await sandbox.makeWritable(join(session(name), "home"));
      }
      await start("a", `umask 077; open(my $f, ">", "secret") or die; print $f "of a"`).exited;
      const read = (name: string) => {
        const child = sandbox.start({
          command: "cat",
          arguments: [join(session("a"), "workspace/secret")],
          environment: {},
          workspace: join(session(name), "workspace"),
          home: join(session(name), "home"),
          readOnly: [join(session("a"), "workspace")],
          signal: AbortSignal.timeout(hangTimeoutMs),
        });
        child.stdin.end();
        return Promise.all([text(child.stdout), text(child.stderr)]);
      };
      expect(await read("b")).toEqual(["", expect.stringContaining("Permission denied")]);
      expect(await read("a")).toEqual(["of a", ""]);
    });
  },
);
