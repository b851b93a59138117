import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import { canLimit } from "../../src/sandboxes/process/cgroup.ts";
import { startProcess } from "../../src/sandboxes/process/process.ts";
import { watchUsage } from "../../src/sandboxes/process/watch.ts";
import type { Exceeded, ResourceLimits } from "../../src/sandboxes/sandbox.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { waitFor } from "../wait-for.ts";
import { DidNotRunError, marked } from "./did-run.ts";

const megabyte = 1024 * 1024;
const roomy: ResourceLimits = { memoryBytes: 4_096 * megabyte, processes: 1_000, diskBytes: 4_096 * megabyte, cpus: 2 };

/** SCM_RIGHTS of unix(7), in perl: `put($from, $file)`; the socket alone knows the file then. */
const send = `use Socket; socketpair(my $from, my $to, AF_UNIX, SOCK_STREAM, 0) or die; sub put { my $b = "x"; my $i = pack("P Q", $b, 1); my $c = pack("Q i i i x4", 20, 1, 1, fileno $_[1]); my $m = pack("Q L x4 P Q P Q i x4", 0, 0, $i, 1, $c, length $c, 0); syscall(46, fileno $_[0], $m, 0) < 0 and die }`;

let folder: string;
const sandbox = createBubblewrap();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-limits-"));
  await sandbox.makeWritable(join(folder, "workspace"));
  await sandbox.makeWritable(join(folder, "home"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** @throws DidNotRunError if the command was not begun: what exceeds a limit need not come to its end */
async function inSandbox(command: string, limits: Partial<ResourceLimits>) {
  const { script, read } = marked(command);
  const child = sandbox.start({
    command: "sh",
    arguments: ["-c", script],
    environment: {},
    workspace: join(folder, "workspace"),
    home: join(folder, "home"),
    readOnly: [],
    limits: { ...roomy, ...limits },
    signal: AbortSignal.timeout(hangTimeoutMs),
  });
  child.stdin.end();
  const [said, complained, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
  return { said: read(`${said}${complained}`, { toItsEnd: false }), code, exceeded: child.exceeded() };
}

describe("a bound of disk", () => {
  it.each([
    ["many files", "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > many$i; done"],
    [
      "many small files in deep folders",
      "while :; do mkdir -p d && cd d && for i in $(seq 200); do echo x > $i; done; head -c 1000000 /dev/zero > f; done",
    ],
    ["its home", "cd ~; i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > many$i; done"],
  ])("ends what fills it with %s, with that as the reason", async (_, command) => {
    const filling = command.replaceAll("~", join(folder, "home"));
    expect(await inSandbox(`rm -rf ./*; ${filling}`, { diskBytes: 48 * megabyte })).toMatchObject({ exceeded: "disk" });
    await inSandbox(`rm -rf ./* ${join(folder, "home")}/*`, {});
  });

  // A removed file's content is in no folder any more, and the file system frees it when no process has it open.
  const make = `sub gone { open(my $f, "+>", "gone") or die; unlink "gone"; syswrite $f, "x" x 15e6; return $f }`;
  it.each([
    ["open", ""],
    ["open by a child that left its group", "if (!fork) { setpgrp; sleep 60; exit } @f = ();"],
    ["open in a process that hides what it has", "syscall(157, 4, 0, 0, 0, 0);"],
    ["on their way over a socket", `${send} put($from, $_) for @f; @f = ();`],
    [
      "on their way over a socket that is on its own way over another",
      `${send} socketpair(my $in, my $out, AF_UNIX, SOCK_STREAM, 0) or die; put($in, $_) for @f; put($from, $out); undef $out; @f = ();`,
    ],
    [
      "open in a process whose first thread is gone",
      `use threads; threads->create(sub { print -e "gone" ? "a file" : "kept"; my $g = gone(); sleep 60 })->detach; syscall(60, 0);`,
    ],
    ["mapped, and not open", "for (@f) { die if syscall(9, 0, 15000000, 1, 1, fileno($_), 0) < 0 } @f = ();"],
  ])("ends what fills it with removed files that it keeps %s", async (how, keep) => {
    // Without root's rights a process may not read mappings, nor a process that is not to be traced.
    if (process.getuid?.() !== 0 && !/^open(?: by|$)/u.test(how)) return;
    // Only together with those that are kept in this way it is too much.
    const last = `print -e "gone" ? "a file" : "kept"; my $g = gone(); sleep 60`;
    const program = `$| = 1; ${make} @f = map { gone() } 1 .. 3; ${keep} ${last}`;
    const { said, exceeded } = await inSandbox(`exec perl -e '${program}'`, { diskBytes: 48 * megabyte });
    expect({ said, exceeded }).toEqual({ said: "kept", exceeded: "disk" });
  });

  it("ends what fills it with files of which none has content, and says that it was their number", async () => {
    const place = { HOME: join(folder, "home") };
    const many = `perl -e 'for my $n (1 .. 60000) { open(my $f, ">", "$ENV{HOME}/n$n") or die } sleep 60'`;
    const { exceeded } = await inSandbox(`HOME=${place.HOME}; export HOME; exec ${many}`, { files: 20_000 });
    expect(exceeded).toBe("files");
    expect(readdirSync(place.HOME).length).toBeGreaterThan(20_000);
    await inSandbox(`find ${place.HOME} -type f -delete`, {});
  });

  it("counts what is in folders that their owner closed", async () => {
    const fill = "mkdir closed && cd closed && for i in 1 2 3 4; do head -c 15000000 /dev/zero > $i; done; chmod 000 .";
    const { exceeded } = await inSandbox(`${fill}; sleep 60`, { diskBytes: 48 * megabyte });
    expect(exceeded).toBe("disk");
    await inSandbox("chmod 700 closed; rm -r closed", {});
  });

  it("lets no file grow beyond it, and none into the memory of /tmp either", async () => {
    const { said, exceeded } = await inSandbox(
      "head -c 99000000 /dev/zero > /tmp/big; head -c 99000000 /dev/zero > big; stat -c %s big; rm -f big; echo went on",
      { diskBytes: 32 * megabyte },
    );
    expect(exceeded).toBeNull();
    expect(said).toMatch(/(?:File too large|File size limit|No space left)/u);
    expect(said).toContain(`${32 * megabyte}\n`);
    expect(said).toContain("went on");
  });

  it("does not bother what stays below it", async () => {
    expect(await inSandbox("head -c 10000000 /dev/zero > fits; sleep 1.2; rm fits; echo fine", {})).toMatchObject({
      said: "fine\n",
      exceeded: null,
    });
  });
});

it("a sandbox's processes are of a lower priority than the server's, and can't raise it", async () => {
  const own = Number(readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ")[16]);
  const { said } = await inSandbox("nice; nice -n -5 true 2> /dev/null; nice -n -5 nice", {});
  const [priority, raised] = said.trim().split("\n").map(Number);
  expect(priority).toBe(own + 10);
  expect(raised).toBe(priority);
});

describe.skipIf(!canLimit())("a bound of processor cores", () => {
  const folders = ["/sys/fs/cgroup/cpu/offstage", "/sys/fs/cgroup/offstage"];
  const throttled = (): number =>
    folders
      .filter((tree) => existsSync(tree))
      .flatMap((tree) =>
        readdirSync(tree)
          .filter((entry) => entry.startsWith(`${process.pid}-`))
          .map((entry) => join(tree, entry, "cpu.stat")),
      )
      .filter((file) => existsSync(file))
      .map((file) => Number(/^nr_throttled (\d+)$/mu.exec(readFileSync(file, "utf8"))?.[1] ?? 0))
      .reduce((sum, count) => sum + count, 0);

  it("comes after the server if both want a core", async () => {
    await inSandbox("true", {});
    const share = ["/sys/fs/cgroup/offstage/cpu.weight", "/sys/fs/cgroup/cpu/offstage/cpu.shares"].find(existsSync);
    expect(Number(readFileSync(share ?? "", "utf8"))).toBe(share?.endsWith("weight") === true ? 20 : 204);
  });

  it("slows down what wants more, and does not end it", async () => {
    const child = sandbox.start({
      command: "sh",
      // It goes on until it was seen to be held back.
      arguments: ["-c", "(while :; do :; done) & (while :; do :; done) & cat; kill %1 %2; echo lived"],
      environment: {},
      workspace: join(folder, "workspace"),
      home: join(folder, "home"),
      readOnly: [],
      limits: { ...roomy, cpus: 0.2 },
      signal: AbortSignal.timeout(hangTimeoutMs),
    });
    const ended = child.exited.then(() => {
      throw new DidNotRunError("did not run: it ended before it was held back");
    });
    await Promise.race([waitFor(() => throttled() > 0, "the kernel holds it back"), ended]);
    child.stdin.end();
    const [said] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    expect([said, child.exceeded()]).toEqual(["lived\n", null]);
  });
});

/** What bounds memory and processes if the kernel can't be asked to. */
describe("looking", () => {
  async function look(command: string, limits: Partial<ResourceLimits>): Promise<Exceeded | null> {
    const child = startProcess(
      "sh",
      ["-c", command],
      { environment: { PATH: process.env["PATH"] ?? "" }, signal: AbortSignal.timeout(hangTimeoutMs) },
      { cwd: folder, ends: "descendants" },
    );
    const watch = watchUsage({
      limits: { ...roomy, ...limits },
      folders: [folder],
      pids: child.pids,
      holders: () => ({ pids: child.pids() }),
      onExceeded: child.kill,
    });
    child.stdin.end();
    child.stdout.resume();
    child.stderr.resume();
    await child.exited;
    watch.stop();
    return watch.exceeded();
  }

  it.each([
    ["memory, of one process", `perl -e 'my $a = qq(x) x 3e8; sleep 20'`, "memory"],
    [
      "memory, of many processes together",
      `for i in 1 2 3 4 5; do perl -e 'my $a = qq(x) x 6e7; sleep 20' & done; wait`,
      "memory",
    ],
    [
      "memory, of one whose first thread is gone",
      `exec perl -e 'use threads; my $n = 3e8; threads->create(sub { sleep 1; my $a = qq(x) x $n; sleep 60 })->detach; syscall(60, 0)'`,
      "memory",
    ],
    [
      "memory, that is on its way over a socket",
      `exec perl -e '${send} my $n = "x"; my $f = syscall(319, $n, 0); open(my $h, ">&=", $f); syswrite $h, "x" x 1e7 for 1 .. 30; put($from, $h); close $h; sleep 60'`,
      "memory",
    ],
    ["memory, of one with an environment of its own", `env -i perl -e 'my $a = qq(x) x 3e8; sleep 20'`, "memory"],
    [
      "memory, that has no name and is not mapped",
      `perl -e 'my $n = "x"; my $f = syscall(319, $n, 0); open(my $h, ">&=", $f); syswrite $h, "x" x 1e7 for 1 .. 30; sleep 60'`,
      "memory",
    ],
    ["processes, that left their group", `for i in $(seq 40); do setsid sleep 20 & done; wait`, "processes"],
  ])("ends what takes too much of %s", async (_, command, reason) => {
    expect(await look(command, { memoryBytes: 200 * megabyte, processes: 30 })).toBe(reason);
  });

  it("ends what keeps removed files open in a thread that has descriptors of its own", async () => {
    // The sandbox's filter refuses unshare(2), but no program can be kept from clone(2) without CLONE_FILES.
    const thread = `syscall(272, 0x400) and die; for (1 .. 4) { open(my $f, "+>", "gone") or die; unlink "gone"; syswrite $f, "x" x 15e6; push @f, $f } sleep 60`;
    const program = `use threads; threads->create(sub { ${thread} })->detach; sleep 60`;
    expect(await look(`exec perl -e '${program}'`, { diskBytes: 48 * megabyte })).toBe("disk");
  });

  it("lets live what takes little", async () => {
    expect(await look("sleep 1.2", {})).toBeNull();
  });
});
