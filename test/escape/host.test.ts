import { execFile, execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { chmod, copyFile, link, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { DidNotRunError, marked } from "../sandboxes/did-run.ts";
import { startWithFoldersLater } from "../sandboxes/later-folders.ts";
import { firstLine } from "../sandboxes/sandbox-folders.ts";

/**
 * What code of an agent's may try on the machine around it. Each attempt runs in the real sandbox, as a session's harness
 * does, beside a server's own files and another session's; it prints ESCAPED only where it got through. As its control the
 * same attempt is made outside, where it has to get through: one that can succeed nowhere shows nothing of the sandbox.
 */
const sandbox = createBubblewrap();
const secret = `secret-${randomUUID()}`;
let data: string;
let workspace: string;
let home: string;
let neighbour: string;
let socketServer: Server;
let socket: string;
/** A process of the server's user, with the secret in its environment: a server whose environment can be known to hold it. */
let server: ChildProcess;
/** A message queue of the machine. */
let queue: string;

const isRoot = process.getuid?.() === 0;

beforeAll(async () => {
  server = spawn("sleep", ["86400"], { env: { ...process.env, OFFSTAGE_ESCAPE_SECRET: secret }, stdio: "ignore" });
  queue = /\d+/u.exec(execFileSync("ipcmk", ["-Q"], { encoding: "utf8" }))?.[0] ?? "";
  data = await mkdtemp(join(tmpdir(), "offstage-escape-"));
  await chmod(data, 0o755);
  workspace = join(data, "sessions/mine/workspace");
  home = join(data, "sessions/mine/home");
  neighbour = join(data, "sessions/theirs/workspace");
  await mkdir(join(data, "run"), { recursive: true });
  for (const folder of [workspace, home, neighbour]) await sandbox.makeWritable(folder);
  await writeFile(join(data, "master.key"), secret, { mode: 0o600 });
  await writeFile(join(neighbour, "their-work.txt"), secret, { mode: 0o666 });
  socket = join(data, "run/theirs.sock");
  socketServer = createServer((client) => client.end(secret));
  await new Promise<void>((resolve) => socketServer.listen(socket, resolve));
  await chmod(socket, 0o666);
});

afterAll(async () => {
  server?.kill("SIGKILL");
  if (queue) spawnSync("ipcrm", ["-q", queue]);
  socketServer?.close();
  await rm(data, { recursive: true, force: true });
});

/** How a sandbox comes to its folders: it has them from its start, or gets them while it runs, as one that was ready before its session. */
type Way = "from its start" | "later";
const ways: readonly Way[] = isRoot ? ["from its start", "later"] : ["from its start"];

/**
 * @returns what it printed
 * @param options.toItsEnd false for a command that ends its own shell
 * @throws DidNotRunError if no shell ran it to its end
 */
async function attempt(
  command: string,
  { way = "from its start", ...options }: { readonly toItsEnd?: boolean; readonly way?: Way } = {},
): Promise<string> {
  const { script, read } = marked(command);
  const request = {
    command: "sh",
    arguments: ["-c", script],
    environment: { HOME: home },
    workspace,
    home,
    readOnly: [],
    limits: { memoryBytes: 2 ** 30, processes: 500, diskBytes: 2 ** 30, cpus: 2 },
    signal: AbortSignal.timeout(hangTimeoutMs),
  };
  const child = way === "later" ? await startWithFoldersLater(sandbox, request) : sandbox.start(request);
  child.stdin.end();
  const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
  return read(`${said}${complained}`, options);
}

/** A command, or one that needs something to be there to succeed outside. */
type Attempt =
  | string
  | {
      readonly command: string;
      /** Makes what it needs. */
      readonly before?: string;
      /** A file that not every machine has. */
      readonly needs?: string;
      /** Whether it can be reached from outside. */
      readonly isThere?: boolean;
    };

/**
 * @param attempted prints what it got
 * @throws DidNotRunError if no shell ran it in the sandbox
 */
async function getsNothing(attempted: Attempt): Promise<void> {
  const {
    command,
    before = "true",
    needs = "/",
    isThere = true,
  }: Exclude<Attempt, string> = typeof attempted === "string" ? { command: attempted } : attempted;
  for (const way of ways) {
    const said = `${way}: ${await attempt(command, { way })}`;
    expect(said).not.toContain("ESCAPED");
    expect(said).not.toContain(secret);
  }
  if (!isRoot || !isThere || !existsSync(needs)) return;
  const gotThrough = new RegExp(`ESCAPED|${secret}`, "u");
  expect(await outside(`${before}\n${command}`), "outside it gets through").toMatch(gotThrough);
}

/**
 * The same with no sandbox around it, as root: only mounts and the machine's name are its own, so that it changes nothing.
 * @returns what it printed
 */
async function outside(command: string): Promise<string> {
  const child = spawn("unshare", ["--mount", "--uts", "sh", "-c", command], {
    cwd: workspace,
    env: { ...process.env, HOME: home },
    stdio: ["ignore", "pipe", "pipe"],
    signal: AbortSignal.timeout(hangTimeoutMs),
  });
  return (await Promise.all([text(child.stdout), text(child.stderr)])).join("");
}

describe("what belongs to the server", () => {
  it.each([
    [
      "its environment, through its process",
      () => `cat /proc/${server.pid}/environ; cat /proc/${process.ppid}/environ`,
    ],
    ["the environment of every process that can be seen", () => "cat /proc/*/environ | tr '\\0' '\\n'"],
    [
      "its command line and open files",
      () => `cat /proc/${process.pid}/cmdline && echo ESCAPED; ls -l /proc/${process.pid}/fd && echo ESCAPED`,
    ],
    [
      "its memory",
      () =>
        `dd if=/proc/${server.pid}/mem of=/dev/null bs=1 count=1 skip=$((${mapped()})) iflag=skip_bytes 2> /dev/null && echo ESCAPED`,
    ],
    [
      "its root, through its process",
      () =>
        `ls /proc/${process.pid}/root && echo ESCAPED; ls /proc/1/root/home /proc/1/root/root 2> /dev/null | grep . && echo ESCAPED`,
    ],
    ["its working directory", () => `ls /proc/${process.pid}/cwd && echo ESCAPED`],
    ["the master key", () => `cat ${data}/master.key`],
    ["its data folder", () => `ls ${data} | grep -v sessions | grep . && echo ESCAPED`],
    [
      "its code",
      () =>
        `ls ${process.cwd()}/src 2> /dev/null && echo ESCAPED; ls ${process.cwd()}/package.json 2> /dev/null && echo ESCAPED`,
    ],
    ["accounts and passwords", () => "cat /etc/passwd /etc/shadow && echo ESCAPED"],
    [
      "keys of the machine",
      () => ({
        command: "ls /etc/ssh /root/.ssh /home/*/.ssh 2> /dev/null | grep . && echo ESCAPED",
        before: "mount -t tmpfs none /home && mkdir -p /home/operator/.ssh && touch /home/operator/.ssh/id_ed25519",
      }),
    ],
    [
      "the kernel's log",
      () => "dmesg > /dev/null 2>&1 && echo ESCAPED; head -n 1 /dev/kmsg 2> /dev/null | grep . && echo ESCAPED",
    ],
    ["the machine's own programs' sockets", () => "ls /run /var/run 2> /dev/null | grep . && echo ESCAPED"],
  ] as readonly [string, () => Attempt][])("can't be read: %s", (_, command) => getsNothing(command()));
});

it("what lies beside the Node that runs the server is not seen, wherever that was put", async () => {
  const place = join(data, "local");
  await mkdir(join(place, "bin"), { recursive: true });
  await mkdir(join(place, "share"), { recursive: true });
  await copyFile(process.execPath, join(place, "bin/node"));
  await writeFile(join(place, "share/secret.txt"), secret, { mode: 0o644 });
  const look = `cat ${place}/share/secret.txt`;
  const program = `
    import { text } from "node:stream/consumers";
    const { createBubblewrap } = await import(process.argv[1]);
    const [workspace, home, command] = process.argv.slice(2);
    const signal = AbortSignal.timeout(${hangTimeoutMs});
    const request = { command: "sh", arguments: ["-c", command], environment: {}, workspace, home, readOnly: [], signal };
    const child = createBubblewrap().start(request);
    child.stdin.end();
    console.log(await text(child.stdout), await text(child.stderr));`;
  const { stdout } = await promisify(execFile)(join(place, "bin/node"), [
    "--input-type=module",
    "-e",
    program,
    join(import.meta.dirname, "../../src/sandboxes/bubblewrap.ts"),
    workspace,
    home,
    `node --print '"runs"'; ${look}`,
  ]);
  if (!stdout.includes("runs")) throw new DidNotRunError(`did not run: it printed ${stdout}`);
  expect(stdout).not.toContain(secret);
  expect(execFileSync("sh", ["-c", look], { encoding: "utf8" })).toBe(secret);
});

describe("what belongs to another session", () => {
  it.each([
    ["its workspace by its path", () => `cat ${neighbour}/their-work.txt; ls ${data}/sessions/theirs && echo ESCAPED`],
    [
      "its workspace by a way up",
      () => "cat ../../theirs/workspace/their-work.txt ../../../sessions/theirs/workspace/their-work.txt",
    ],
    ["its workspace by a link", () => `ln -sfn ${neighbour} link && cat link/their-work.txt; rm -f link`],
    ["its files by a second name of them", () => `ln -f ${neighbour}/their-work.txt mine && cat mine`],
    [
      "its gateway's socket",
      () => `perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new("${socket}") or exit; print "ESCAPED ", <$s>'`,
    ],
    ["the names of other sessions", () => `ls ${data}/sessions | grep -v mine | grep . && echo ESCAPED`],
  ] as readonly [string, () => Attempt][])("can't be reached: %s", (_, command) => getsNothing(command()));

  it("sees no process of it, nor can signal one", async () => {
    const mark = String(40_000 + Math.floor(Math.random() * 9_000));
    const other = sandbox.start({
      command: "sh",
      arguments: ["-c", `echo up; exec sleep ${mark}`],
      environment: {},
      workspace: neighbour,
      home: neighbour,
      readOnly: [],
      signal: AbortSignal.timeout(hangTimeoutMs),
    });
    await firstLine(other.stdout);
    const count = `cat /proc/*/cmdline 2> /dev/null | tr '\\0' ' ' | grep -o '[s]leep ${mark}' | grep -c .`;
    // Of all the processes outside it is one to see.
    expect(isRoot ? Number(await outside(count)) : 1).toBeGreaterThan(0);
    const said = await attempt(`${count}; kill -9 -1; echo still`, { toItsEnd: false });
    expect(said).toContain("0\n");
    let over = false;
    void other.exited.then(() => (over = true));
    await attempt("true");
    expect(over).toBe(false);
    other.kill();
    await other.exited;
  });
});

describe("processes outside", () => {
  it.each([
    ["a signal to the server", () => `kill -0 ${server.pid} 2> /dev/null && echo ESCAPED`],
    ["tracing the server", () => `perl -e 'print "ESCAPED" if syscall(101, 16, ${server.pid}, 0, 0) == 0'`],
    [
      "reading another's memory by its number",
      () =>
        `perl -e 'my $b = "x" x 8; my $l = pack("QQ", unpack("Q", pack("P", $b)), 8); my $r = pack("QQ", ${mapped()}, 8); print "ESCAPED" if syscall(310, ${server.pid}, $l, 1, $r, 1, 0) >= 0'`,
    ],
    ["a handle on another process", () => `perl -e 'print "ESCAPED" if syscall(434, ${server.pid}, 0) >= 0'`],
    [
      "messages between processes of the machine",
      () => `ipcs -q 2> /dev/null | awk '$2 == ${queue}' | grep . && echo ESCAPED; true`,
    ],
    [
      "a place at the front of the queue for the processor",
      () => "nice -n -10 true 2>&1 | grep -qi 'permission\\|cannot' || echo ESCAPED",
    ],
  ] as readonly [string, () => Attempt][])("can't be reached by %s", (_, command) => getsNothing(command()));

  it("can't be reached by a signal to all", async () => {
    // One that is stopped goes on as soon as the signal reaches it.
    const all = "kill -CONT -1 2> /dev/null; true";
    const stopped = spawn("sleep", ["86400"], { stdio: "ignore" });
    try {
      stopped.kill("SIGSTOP");
      await vi.waitFor(() => expect(stateOf(stopped.pid)).toBe("T"));
      await attempt(all);
      expect(stateOf(stopped.pid)).toBe("T");
    } finally {
      stopped.kill("SIGKILL");
    }
    if (!isRoot) return;
    // All of a namespace of processes of its own: stopped ones of the machine stay so.
    const look = "awk '{ print $3 }' /proc/$other/stat";
    const among = `sleep 86400 & other=$!; kill -STOP $other; while [ "$(${look})" != T ]; do :; done; ${all}; while [ "$(${look})" = T ]; do :; done; ${look}`;
    const { stdout } = spawnSync("unshare", ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", among], {
      encoding: "utf8",
      timeout: hangTimeoutMs,
    });
    expect(stdout).toMatch(/^[SR]/u);
  });
});

const stateOf = (pid: number | undefined): string | undefined =>
  readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0];

/** An address in the server's memory at which something is. */
const mapped = (): string => `0x${readFileSync(`/proc/${server.pid}/maps`, "utf8").split("-")[0] ?? ""}`;

describe("rights", () => {
  it.each([
    [
      "a program of root's",
      () =>
        "for f in /usr/bin/su /usr/bin/sudo /bin/mount /usr/bin/passwd; do [ -u $f ] && $f -c id 2> /dev/null | grep -q 'uid=0' && echo ESCAPED; done; true",
    ],
    [
      "a program made to run as root",
      () => "cp /bin/sh ./sh && chmod 6777 ./sh && ./sh -p -c 'id -u' | grep -q '^0$' && echo ESCAPED; rm -f sh",
    ],
    [
      "capabilities",
      () => "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | grep -v '0000000000000000$' && echo ESCAPED; true",
    ],
    ["becoming root by asking", () => "setpriv --reuid 0 true 2> /dev/null && echo ESCAPED; true"],
    ["a user namespace of its own, in which it is root", () => "unshare -Ur true 2> /dev/null && echo ESCAPED; true"],
    ["other namespaces", () => "for n in m n p u i C; do unshare -$n true 2> /dev/null && echo ESCAPED; done; true"],
    [
      "the namespaces of the server",
      () =>
        `nsenter -t ${process.pid} -m true 2> /dev/null && echo ESCAPED; nsenter -t 1 -a id 2> /dev/null | grep -q 'uid=0' && echo ESCAPED; true`,
    ],
    ["gaining rights by running something", () => "grep NoNewPrivs /proc/self/status | grep -q 1 || echo ESCAPED"],
    ["another root folder", () => "chroot / true 2> /dev/null && echo ESCAPED; true"],
    [
      "mounts",
      () =>
        "mount -t tmpfs none /mnt 2> /dev/null && echo ESCAPED; mount --bind / . 2> /dev/null && echo ESCAPED; umount /proc 2> /dev/null && echo ESCAPED; true",
    ],
  ] as readonly [string, () => Attempt][])("can't be had: %s", (_, command) => getsNothing(command()));
});

describe("the kernel", () => {
  it.each([
    [
      "its settings",
      () =>
        "for f in kernel/core_pattern kernel/modprobe vm/drop_caches kernel/sysrq; do (: >> /proc/sys/$f) 2> /dev/null && echo ESCAPED; done; true",
    ],
    [
      "its triggers",
      () => ({
        command: "(: >> /proc/sysrq-trigger) 2> /dev/null && echo ESCAPED; true",
        needs: "/proc/sysrq-trigger",
      }),
    ],
    [
      "its helpers",
      () =>
        "(: >> /sys/kernel/uevent_helper) 2> /dev/null && echo ESCAPED; ls /sys/kernel 2> /dev/null | grep . && echo ESCAPED; true",
    ],
    [
      "its debugging",
      () => ({
        command: "ls /sys/kernel/debug /sys/kernel/tracing 2> /dev/null | grep '^[^/]' && echo ESCAPED; true",
        before: "mount -t debugfs none /sys/kernel/debug || mount -t tracefs none /sys/kernel/tracing",
      }),
    ],
    [
      "keys in it",
      () => "keyctl show 2> /dev/null && echo ESCAPED; perl -e 'print \"ESCAPED\" if syscall(250, 0, -3, 0) >= 0'",
    ],
    // With a file that is not there, and with no time at all: an allowed caller gets that error (EBADF), or none;
    // nothing changes.
    [
      "modules",
      () => ({
        command: 'perl -e \'my $b = ""; $! = 0; syscall(313, -1, $b, 0); print "ESCAPED" if $! == 9\'',
        needs: "/proc/modules",
      }),
    ],
    ["the clock", () => "perl -e 'print \"ESCAPED\" if syscall(164, 0, 0) == 0'"],
    ["the machine's name", () => "hostname evil 2> /dev/null && echo ESCAPED; true"],
    [
      "its control groups, to be let out of them",
      () =>
        "for f in $(find /sys/fs/cgroup /proc/self/cgroup -name cgroup.procs 2> /dev/null); do (: >> $f) 2> /dev/null && echo ESCAPED; done; true",
    ],
    [
      "a release agent",
      () =>
        "mkdir -p c; for t in cgroup cgroup2; do mount -t $t none c 2> /dev/null && echo ESCAPED && umount c; done; rmdir c",
    ],
  ] as readonly [string, () => Attempt][])("can't be changed: %s", (_, command) => getsNothing(command()));
});

/** By their numbers on x86-64, with arguments that outside of a sandbox are no reason to refuse them. */
const calls: readonly [name: string, call: string][] = [
  ["modify_ldt", "154, 0, $b, 16"],
  ["personality, with addresses that are known before", "135, 0x40000"],
  ["personality, with memory that can be run", "135, 0x400000"],
  ["kcmp", "312, $$, $$, 1, 0, 0"],
  ["memfd_secret", "447, 0"],
  ["pidfd_getfd", "438, 0, 0, 0"],
  ["process_madvise", "440, -1, 0, 0, 0, 0"],
  ["get_mempolicy", "239, 0, 0, 0, 0, 0"],
  ["set_mempolicy", "238, 0, 0, 0"],
  ["mbind", "237, 0, 0, 0, 0, 0, 0"],
  ["ustat", "136, 0, $b"],
  ["listmount", "458, 0, 0, 0, 0"],
  ["statmount", "457, 0, 0, 0, 0"],
];

describe.skipIf(process.arch !== "x64")("system calls that no program needs", () => {
  const script = (call: string): string =>
    `perl -e 'my $b = "\\0" x 4096; $! = 0; my $r = syscall(${call}); print $r >= 0 ? "went" : $! + 0'`;

  it.each(calls)("are refused: %s", async (_, call) => {
    expect(await attempt(script(call))).toBe("1");
    // Outside the kernel itself answers: not that it may not (EPERM), unless it does not know the call (ENOSYS) or is not built for it.
    const { stdout } = await promisify(execFile)("sh", ["-c", script(call)]);
    expect(stdout).not.toBe("1");
  });

  it("are not there if they are newer than those that were looked at", async () => {
    for (const number of [463, 467, 469, 1_000]) expect(await attempt(script(`${number}, -1, 0, 0, 0, 0`))).toBe("38");
  });

  it("stay where they are needed: who asks what it runs as, watches its child, or reads its memory", async () => {
    expect(await attempt(script("135, 0xffffffff"))).toBe("went");
    expect(await attempt(script("135, 0x20000"))).toBe("went");
    expect(await attempt(script("101, 0, 0, 0, 0"))).toBe("went");
    expect(await attempt(script("206, 8, $b"))).toBe("went");
  });
});

/** Major and minor number of a disk of the machine. */
function firstDisk(): { readonly numbers: string; readonly path: string } {
  const [, major = "8", minor = "0", name = "sda"] =
    /^ *(\d+) +(\d+) +\d+ (\S+)/mu.exec(readFileSync("/proc/partitions", "utf8")) ?? [];
  return { numbers: `${major} ${minor}`, path: `/dev/${name}` };
}

/** Whether root may read it here: some machines keep their disks even from root. */
function isReadable(path: string): boolean {
  try {
    closeSync(openSync(path, "r"));
    return true;
  } catch (error) {
    console.warn(`${path} can't be read outside of a sandbox either, which is no control: ${String(error)}`);
    return false;
  }
}

describe("devices", () => {
  it.each([
    [
      "a disk, made by hand",
      () => ({
        command: `mknod disk b ${firstDisk().numbers} 2> /dev/null && head -c 1 disk > /dev/null 2>&1 && echo ESCAPED; rm -f disk`,
        needs: firstDisk().path,
        isThere: isReadable(firstDisk().path),
      }),
    ],
    [
      "memory, made by hand",
      () => ({
        command: "mknod mem c 1 1 2> /dev/null && head -c 1 mem > /dev/null 2>&1 && echo ESCAPED; rm -f mem",
        needs: "/dev/mem",
      }),
    ],
    [
      "those of the machine",
      () => "ls /dev | grep -E '^(sd|vd|nvme|loop|kvm|mem|fuse|net|dri|input)' && echo ESCAPED; true",
    ],
  ] as readonly [string, () => Attempt][])("can't be had: %s", (_, command) => getsNothing(command()));
});

it("the terminal of the server is not the sandbox's", async () => {
  const write = "(echo x > /dev/tty) 2> /dev/null && echo ESCAPED; echo looked";
  const program = join(data, "in-terminal.mjs");
  await writeFile(
    program,
    `import { text } from "node:stream/consumers";
     const { createBubblewrap } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/sandboxes/bubblewrap.ts"))});
     const [workspace, home] = ${JSON.stringify([workspace, home])};
     const signal = AbortSignal.timeout(${hangTimeoutMs});
     const child = createBubblewrap().start({ command: "sh", arguments: ["-c", ${JSON.stringify(write)}], environment: {}, workspace, home, readOnly: [], signal });
     child.stdin.end();
     console.log(await text(child.stdout), await text(child.stderr));`,
  );
  /** A terminal of its own, as of an operator who types the command. */
  const inTerminal = async (command: string): Promise<string> =>
    (await promisify(execFile)("script", ["--quiet", "--return", "--command", command, "/dev/null"])).stdout;
  const said = await inTerminal(`${process.execPath} ${program}`);
  if (!said.includes("looked")) throw new DidNotRunError(`did not run: it printed ${said}`);
  expect(said).not.toContain("ESCAPED");
  expect(await inTerminal(write)).toContain("ESCAPED");
});

describe("files", () => {
  it("of the system can't be changed, nor folders above its own", async () => {
    const name = `offstage-evil-${randomUUID()}`;
    const folders = ["/usr/bin", "/etc", "/bin", "", data, join(data, "sessions"), "/lib", "/dev", "/opt"];
    const write = `for d in "${folders.join('" "')}"; do (echo x > "$d/${name}") 2> /dev/null && echo "ESCAPED $d"; done; true`;
    const paths = folders.map((folder) => `${folder}/${name}`);
    expect(await attempt(write)).not.toContain("ESCAPED");
    expect(paths.filter((path) => existsSync(path))).toEqual([]);
    if (!isRoot) return;
    const said = await outside(`${write}; rm -f "${paths.join('" "')}"`);
    expect(said.match(/ESCAPED/gu)).toHaveLength(folders.length);
  });

  it("of /tmp are its own, and gone with it", async () => {
    const name = `offstage-${randomUUID()}`;
    await attempt(`echo x > /tmp/${name}`);
    expect(existsSync(join("/tmp", name))).toBe(false);
    await outside(`echo x > /tmp/${name}`);
    expect(existsSync(join("/tmp", name))).toBe(isRoot);
    await rm(join("/tmp", name), { force: true });
  });

  it("that it makes belong to no user with rights, whatever bits it sets", async () => {
    await attempt("echo '#!/bin/sh' > planted; chmod 6777 planted");
    const { uid, mode } = lstatSync(join(workspace, "planted"));
    // Under root the agent is another user; else its program can do no more than it could.
    expect(uid === 0 && (mode & 0o4000) !== 0).toBe(false);
  });

  it("outside are not followed to by a link that it leaves in the place of a folder", async () => {
    const trap = join(data, "sessions/mine/workspace/trap");
    await symlink(data, trap);
    await getsNothing("ls trap/ | grep master && echo ESCAPED; true");
    expect(readdirSync(data)).toContain("master.key");
    await rm(trap);
  });

  it("outside keep their content when it races links against programs that write for it", async () => {
    // A harness's settings are written inside, where the race can win nothing.
    const { writeHarnessFiles } = await import("../../src/worker/sandboxed/harness-files.ts");
    const racing = attempt(
      `end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do rm -rf ${home}/.evil; ln -sfn ${data} ${home}/.evil; rm -rf ${home}/.evil; mkdir ${home}/.evil; done`,
    );
    const place = { workspace, home, signal: AbortSignal.timeout(hangTimeoutMs) };
    for (let round = 0; round < 15; round += 1) {
      await writeHarnessFiles(sandbox, place, { ".evil/master.key": "overwritten" }).catch(() => undefined);
    }
    await racing;
    expect(readFileSync(join(data, "master.key"), "utf8")).toBe(secret);
    expect(statSync(join(data, "master.key")).mode & 0o777).toBe(0o600);
    // A write from outside would be lost: a write through the link changes the file behind it.
    await rm(join(home, ".evil"), { recursive: true, force: true });
    await symlink(data, join(home, ".evil"));
    writeFileSync(join(home, ".evil/master.key"), "overwritten");
    expect(readFileSync(join(data, "master.key"), "utf8")).toBe("overwritten");
    writeFileSync(join(data, "master.key"), secret);
    await rm(join(home, ".evil"));
  });

  // If the server is not root, the agent's user is the server's: it may write to its own folders' files.
  it.skipIf(!isRoot)("of the server can't be changed by a second name that was there before", async () => {
    // Even where an operator's own tool linked one in, it stays the server's to write.
    await link(join(data, "master.key"), join(workspace, "linked"));
    const change = "echo changed > linked; cat linked";
    await attempt(change);
    expect(readFileSync(join(data, "master.key"), "utf8")).toBe(secret);
    await outside(change);
    expect(readFileSync(join(data, "master.key"), "utf8")).toBe("changed\n");
    writeFileSync(join(data, "master.key"), secret);
    await rm(join(workspace, "linked"), { force: true });
  });
});
