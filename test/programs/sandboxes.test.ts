import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createHandshake } from "../../src/sandboxes/container/handshake.ts";
import { testEnvironment } from "../test-environment.ts";
import { runProgram, shells, textOf, useFolder } from "./run.ts";

const folder = useFolder();

describe.each(shells)("handshake.sh in %s", (shell) => {
  let child: ChildProcessWithoutNullStreams;

  /** Starts a handshake before a command. The tests of the network print what they get. */
  function start(command: readonly string[], environment: Record<string, string> = {}) {
    const trials = ['echo "bash: $# $*"', "console.log('node:', ...process.argv.slice(1))"];
    child = spawn(shell, ["-c", textOf("sandboxes/container/handshake.sh"), "sh", ...trials, ...command], {
      argv0: "sh",
      env: { ...testEnvironment(), ...environment },
    });
    return {
      handshake: createHandshake(child.stdin, child.stdout),
      exited: new Promise((resolve) => child.once("exit", resolve)),
    };
  }

  afterEach(() => void child.kill("SIGKILL"));

  test("executes the command on request, with its arguments and the rest of the input", async () => {
    const print = ["sh", "-c", 'printf "%s|" "$@"; cat', "sh", "a b", "", "$HOME", "-n", "new\nline"];
    const { handshake, exited } = start(print);
    await handshake.ready();
    handshake.proceed();
    child.stdin.end("go\ntell\n");
    expect(await text(child.stdout)).toBe("a b||$HOME|-n|new\nline|go\ntell\n");
    expect(await exited).toBe(0);
  });

  test("tells the kernel's files, and leaves out those that are not there", async () => {
    const { handshake } = start(["true"]);
    await handshake.ready();
    const files = await handshake.readKernelFiles();
    expect(files["/proc/self/mountinfo"]).toContain(" / ");
    expect(files["/proc/self/status"]).toMatch(/^Name:\t/u);
    expect(Object.keys(files)).not.toContain("/sys/fs/cgroup/nothing");
  });

  test("hands the addresses to the trials, of which no variable makes anything else", async () => {
    const { handshake } = start(["true"], {
      BASH_ENV: "/dev/stdin",
      NODE_OPTIONS: "--require /nowhere",
      LD_PRELOAD: "/none",
    });
    await handshake.ready();
    expect(await handshake.probeNetwork("bash")).toEqual([expect.stringMatching(/^bash: 3 1\.1\.1\.1\/443 /u)]);
    expect(await handshake.probeNetwork("node")).toEqual([expect.stringMatching(/^node: 1\.1\.1\.1\/443 /u)]);
  });

  test("executes nothing if its input ends", async () => {
    const { handshake, exited } = start(["sh", "-c", "echo ran"]);
    await handshake.ready();
    child.stdin.end();
    expect([await text(child.stdout), await exited]).toEqual(["", 125]);
  });
});

describe("self-test.cjs", () => {
  test("prints what it found as JSON", async () => {
    const { code, stdout } = await runProgram("sandboxes/container/self-test.cjs", { cwd: folder.path });
    const found = JSON.parse(stdout.toString()) as { memory: number | null };
    expect([code, found]).toEqual([0, { memory: found.memory, wrote: true, git: true }]);
  });

  test("tells a folder that it can't write to, and an image without git", async () => {
    const environment = { PATH: folder.path };
    // Not even root can write here.
    const { stdout } = await runProgram("sandboxes/container/self-test.cjs", { cwd: "/proc/self", environment });
    expect(JSON.parse(stdout.toString())).toMatchObject({ wrote: false, git: false });
  });
});

/** A process namespace of its own, which ends with its command: as in a sandbox. */
const namespace = ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--die-with-parent", "--"];

describe("relay.pl", () => {
  const run = (command: readonly string[], socket = "/nowhere", environment: Record<string, string> = {}) =>
    runProgram("sandboxes/process/relay.pl", {
      cwd: folder.path,
      within: namespace,
      arguments: [socket, ...command],
      environment: { AT: "{gatewayPort}", ...environment },
      input: "input",
    });

  /** A gateway that answers what it was sent, once that has ended, with a mark behind it. */
  async function withGateway<T>(use: (socket: string) => Promise<T>): Promise<T> {
    const socket = join(folder.path, "gateway.sock");
    const server = createServer({ allowHalfOpen: true }, (one) => {
      one.on("error", () => undefined);
      void buffer(one).then((said) => one.end(Buffer.concat([said, Buffer.from("!")])));
    });
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    try {
      return await use(socket);
    } finally {
      server.close();
    }
  }

  test("carries whole connections both ways, many at once, each to its end", async () => {
    const ask = `
      const net = require("node:net");
      const sent = (n) => Buffer.alloc(n * 40_000, String(n % 10));
      const once = (n) => new Promise((resolve, reject) => {
        const one = net.connect({ port: Number(process.argv[1]), allowHalfOpen: true });
        const parts = [];
        one.on("data", (part) => parts.push(part)).on("error", reject).on("end", () => {
          const all = Buffer.concat(parts);
          resolve(all.equals(Buffer.concat([sent(n), Buffer.from("!")])));
        });
        one.end(sent(n));
      });
      const many = Array.from({ length: 60 }, (_, n) => n);
      Promise.all(many.map(once)).then(async (first) => console.log([...first, await once(3)].every(Boolean)));`;
    const { stdout, stderr, code } = await withGateway((socket) =>
      run([process.execPath, "-e", ask, "{gatewayPort}"], socket),
    );
    expect([stdout.toString(), stderr, code]).toEqual(["true\n", "", 0]);
  });

  test("goes on after connections that were broken off, and ends those that no gateway takes", async () => {
    const ask = `
      const net = require("node:net");
      const port = Number(process.argv[1]);
      const broken = () => new Promise((resolve) => {
        const one = net.connect(port, () => one.write("x", () => one.resetAndDestroy()));
        one.on("error", () => undefined).on("close", resolve);
      });
      const last = net.connect({ port, allowHalfOpen: true });
      last.on("error", () => undefined);
      Promise.all(Array.from({ length: 20 }, broken)).then(() => last.end("whole").pipe(process.stdout));`;
    const program = [process.execPath, "-e", ask, "{gatewayPort}"];
    const { stdout } = await withGateway((socket) => run(program, socket));
    expect(stdout.toString()).toBe("whole!");
    const alone = await run(program, join(folder.path, "none.sock"));
    expect([alone.stdout.toString(), alone.code]).toEqual(["", 0]);
  });

  test("fills the port into arguments and environment, and is nothing that the command meets", async () => {
    // The command's input, output, signals and exit code are its own, and it has no child.
    const command = [
      "sh",
      "-c",
      'cat; echo " $1 $AT"; read -r children < /proc/$$/task/$$/children; echo "[$children]"; kill -9 $$',
      "sh",
      "x{gatewayPort}y",
    ];
    const { code, stdout, stderr } = await run(command);
    // As bubblewrap says it: 128 and the signal.
    expect([code, stderr]).toEqual([137, ""]);
    expect(stdout.toString()).toMatch(/^input x(\d+)y \1\n\[\]\n$/u);
  });

  test("ends the command if what forwards has ended", async () => {
    const kill = 'read -r relay rest < /proc/$PPID/task/$PPID/children; echo "$rest"; kill -9 $relay; exec sleep 600';
    const { code, stdout } = await run(["sh", "-c", kill]);
    expect([code, stdout.toString()]).toEqual([1, expect.stringMatching(/^\d+ *\n$/u)]);
  });

  test("says which command there is not", async () => {
    const { code, stderr } = await run(["/no/such/program"]);
    expect([code, stderr]).toEqual([127, "/no/such/program: No such file or directory\n"]);
  });

  test("sets the same variables as relay.cjs where the gateway is the only way out", async () => {
    const environment = { MAVEN_OPTS: "-Xmx1g", MANY: "{gatewayPort} {gatewayPort}" };
    const perl = await run(["env"], "/nowhere", environment);
    const node = await runProgram("sandboxes/process/relay.cjs", {
      cwd: folder.path,
      arguments: ["/nowhere", "closed", "env"],
      environment: { AT: "{gatewayPort}", ...environment },
    });
    const variables = ({ stdout }: { readonly stdout: Buffer }): string[] => {
      const lines = stdout.toString().trim().split("\n");
      const port = lines.find((line) => line.startsWith("AT="))?.slice(3) ?? "";
      return lines
        .filter((line) => !/^(?:PWD|OLDPWD|SHLVL|_)=/u.test(line))
        .map((line) => line.replaceAll(port, "<port>"))
        .sort();
    };
    expect(variables(perl)).toEqual(variables(node));
    expect(variables(node)).toContain("HTTP_PROXY=http://127.0.0.1:<port>");
  });
});

describe("relay.cjs", () => {
  const run = (
    kind: "closed" | "open",
    command: readonly string[],
    socket = "/nowhere",
    environment: Record<string, string> = {},
  ) =>
    runProgram("sandboxes/process/relay.cjs", {
      cwd: folder.path,
      arguments: [socket, kind, ...command],
      environment: { AT: "{gatewayPort}", HTTP_PROXY: "mine", ...environment },
      input: "input",
    });

  test("carries both directions of a connection to the gateway's socket", async () => {
    const socket = join(folder.path, "gateway.sock");
    const server = createServer({ allowHalfOpen: true }, (one) => void text(one).then((said) => one.end(`${said}!`)));
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    const ask = `
      const one = require("node:net").connect({ port: Number(process.argv[1]), allowHalfOpen: true });
      one.end("hello").pipe(process.stdout)`;
    const { stdout, code } = await run("open", [process.execPath, "-e", ask, "{gatewayPort}"], socket);
    server.close();
    expect([stdout.toString(), code]).toEqual(["hello!", 0]);
  });

  test("fills the port into arguments and environment, and hands input, output and exit code on", async () => {
    const command = ["sh", "-c", 'cat; echo " $1 $AT $HTTP_PROXY"; echo wrong >&2; exit 3', "sh", "x{gatewayPort}y"];
    const { code, stdout, stderr } = await run("open", command);
    expect([code, stderr]).toEqual([3, "wrong\n"]);
    expect(stdout.toString()).toMatch(/^input x(\d+)y \1 mine\n$/u);
  });

  test("names itself as proxy if the gateway is the only way out", async () => {
    const { stdout } = await run("closed", [
      "sh",
      "-c",
      'echo "$AT $HTTP_PROXY $https_proxy $NO_PROXY $NODE_USE_ENV_PROXY"',
    ]);
    expect(stdout.toString()).toMatch(
      /^(\d+) http:\/\/127\.0\.0\.1:\1 http:\/\/127\.0\.0\.1:\1 127\.0\.0\.1,localhost,::1 1\n$/u,
    );
  });

  test("tells Yarn and Java's tools of the proxy by their own variables, after what these say already", async () => {
    const print = 'printf "%s\\n" "$AT" "$YARN_HTTPS_PROXY" "$MAVEN_OPTS" "$GRADLE_OPTS" "$SBT_OPTS"';
    const lines = async (kind: "closed" | "open") =>
      (await run(kind, ["sh", "-c", print], "/nowhere", { MAVEN_OPTS: "-Xmx1g" })).stdout.toString().split("\n");
    const [port = "", yarn, maven, gradle, sbt] = await lines("closed");
    const java = `-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=${port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=${port}`;
    expect([yarn, maven, gradle, sbt]).toEqual([
      `http://127.0.0.1:${port}`,
      `-Xmx1g ${java} -Daether.connector.http.useSystemProperties=true`,
      java,
      java,
    ]);
    expect((await lines("open")).slice(1, 5)).toEqual(["", "-Xmx1g", "", ""]);
  });

  test("tells a command that is not there, and one that a signal ended", async () => {
    expect(await run("open", ["no-such-program"])).toMatchObject({
      code: 127,
      stderr: expect.stringContaining("ENOENT"),
    });
    expect(await run("open", ["sh", "-c", "kill -TERM $$"])).toMatchObject({ code: 143 });
  });
});

describe.each(shells)("enter-bubblewrap.sh in %s", (shell) => {
  async function enter(parameters: readonly string[], assignments: string): Promise<string> {
    const child = spawn(shell, ["-c", textOf("sandboxes/enter-bubblewrap.sh"), "sh", ...parameters], {
      argv0: "sh",
      env: testEnvironment(),
      stdio: ["ignore", "pipe", "inherit", "pipe"],
    });
    const [, stdout, , descriptor] = child.stdio as unknown as [
      null,
      NodeJS.ReadableStream,
      null,
      NodeJS.WritableStream,
    ];
    descriptor.end(assignments);
    return text(stdout);
  }

  test("sets the environment and the command's arguments as they are, whatever their names", async () => {
    const print = ["sh", "-c", 'echo "$n $nice $A|$*"; { true <&3; } 2> /dev/null || echo closed', "sh", "a b", "$A"];
    const said = await enter(["", "", "/", ...print], "export n='false'\nexport nice='x'\nexport A='it'\\''s $B'\n");
    expect(said).toMatch(/^false x it's \$B\|a b \$A\nclosed\n$/u);
  });

  test("limits the size of files and core dumps, and lets the server come first", async () => {
    const print = ["sh", "-c", "ulimit -f; ulimit -c; nice"];
    expect(await enter(["2048", "", "/", ...print], "")).toBe("2048\n0\n10\n");
    expect(await enter(["", "", "/", "sh", "-c", "ulimit -f"], "")).toBe("unlimited\n");
  });
});

describe.each(shells)("remove-folder.sh in %s", (shell) => {
  const remove = (path: string) =>
    runProgram("worker/disk/remove-folder.sh", { shell, cwd: folder.path, arguments: [path] });

  test("removes a folder that its owner may not change, and follows no link", async () => {
    const target = join(folder.path, "-rf it's");
    await mkdir(join(target, "inner"), { recursive: true });
    await writeFile(join(folder.path, "outside"), "x");
    await writeFile(join(target, "inner/new\nline"), "x");
    await symlink(join(folder.path, "outside"), join(target, "inner/link"));
    await chmod(join(target, "inner"), 0o500);
    expect(await remove(target)).toMatchObject({ code: 0, stderr: "" });
    await expect(readFile(target)).rejects.toMatchObject({ code: "ENOENT" });
    expect(await readFile(join(folder.path, "outside"), "utf8")).toBe("x");
  });

  test("is content if nothing is there, and says what it could not remove", async () => {
    expect(await remove(join(folder.path, "none"))).toMatchObject({ code: 0 });
    const { code, stderr } = await remove("/proc/self/task");
    expect([code, stderr.length <= 500]).toEqual([1, true]);
    expect(stderr).toContain("/proc/self/task");
  });
});

describe.each(shells)("count-folders.sh and count-open.sh in %s", (shell) => {
  let path: string;

  beforeEach(async () => {
    path = await mkdtemp(join(tmpdir(), "-offstage count"));
  });

  afterEach(() => rm(path, { recursive: true, force: true }));

  test("print totals alone, whatever names a folder has", async () => {
    await writeFile(join(path, "bytes 999\nfiles 999"), Buffer.alloc(1_000_000));
    const { stdout } = await runProgram("sandboxes/process/count-folders.sh", { shell, cwd: "/", arguments: [path] });
    const lines = stdout.toString().split("\n");
    expect(lines.filter((line) => line.startsWith("files "))).toEqual(["files 2"]);
    expect(lines.filter((line) => line.startsWith("bytes ")).map((line) => Number(line.slice(6)) >= 1_000_000)).toEqual(
      [true],
    );
  });

  test("count a deleted file that a process has open, by process and by user", async () => {
    const name = join(path, "deleted");
    const file = await open(name, "w");
    await file.write(Buffer.alloc(1_000_000));
    const { dev, ino } = await file.stat();
    await rm(name);
    const holders = [[String(process.pid)], ["uid", String(process.getuid?.())]];
    for (const parameters of holders) {
      const { stdout } = await runProgram("sandboxes/process/count-open.sh", {
        shell,
        cwd: "/",
        arguments: parameters,
      });
      expect(stdout.toString()).toMatch(new RegExp(`^open ${dev}:${ino} \\d+$`, "mu"));
    }
    await file.close();
  });

  test("print nothing of a process that is gone", async () => {
    const parameters = { shell, cwd: "/", arguments: ["999999999"] };
    expect(await runProgram("sandboxes/process/count-open.sh", parameters)).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("write-files.cjs", () => {
  const write = (files: Record<string, string | object>) =>
    runProgram("worker/sandboxed/write-files.cjs", { cwd: folder.path, input: JSON.stringify(files) });

  test("writes a file that is to be empty, with its folder, and none for a part that is left out", async () => {
    const part = { part: "", unless: "never" };
    expect((await write({ ".codex/config.toml": "", ".config/go/env": part })).code).toBe(0);
    expect(await readFile(join(folder.path, ".codex/config.toml"), "utf8")).toBe("");
    expect(existsSync(join(folder.path, ".config"))).toBe(false);
  });

  test("writes each file, and creates its folders", async () => {
    const files = { ".h/-n/new\nline": 'it\'s "a"\n', ü: "\u{1f600}\0", b: "" };
    expect(await write(files)).toMatchObject({ code: 0, stderr: "" });
    for (const [name, content] of Object.entries(files))
      expect(await readFile(join(folder.path, name), "utf8")).toBe(content);
  });

  test("fails if a file is in a folder's place", async () => {
    await writeFile(join(folder.path, "a"), "x");
    const { code, stderr } = await write({ "a/b": "y" });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/EEXIST|ENOTDIR/u)]);
  });
});
