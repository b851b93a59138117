import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import type { Sandbox } from "../../src/sandboxes/sandbox.ts";
import { isInstalled } from "../registries/installed.ts";
import { waitFor } from "../wait-for.ts";
import { commandLines, firstLine, running, uniqueMark, useSandboxFolders } from "./sandbox-folders.ts";
import { describeSandbox } from "./shared-suite.ts";

/** What every sandbox does, then what only one that isolates does. */
const sandboxes: readonly [string, Sandbox][] = [
  ["bubblewrap", createBubblewrap()],
  ["none", createUnsandboxed()],
];

describe.each(sandboxes)("%s", (_, sandbox) => {
  describeSandbox(sandbox);
});

describe("bubblewrap alone", () => {
  const sandbox = createBubblewrap();
  const place = useSandboxFolders(sandbox);

  it("has no rights and no way to any", async () => {
    const seen = await place.run(
      "id -u; grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr '\\t' ' '; echo 1 2>/dev/null > /proc/sys/kernel/sysrq && echo sysctl; cat /proc/1/environ 2> /dev/null | grep -c . ; true",
    );
    expect(seen.split("\n")[0]).not.toBe("0");
    for (const name of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
      expect(seen).toContain(`${name}: 0000000000000000`);
    expect(seen).toContain("NoNewPrivs: 1");
    expect(seen).not.toContain("sysctl");
  });

  it("has the settings without which the system's programs do not start, and none that may hold a password", async () => {
    const seen = await place.run("cd /etc && find -L . -mindepth 1 -maxdepth 2 2> /dev/null");
    const paths = seen.split("\n");
    for (const path of ["os-release", "services", "java-17-openjdk", "maven/m2.conf"].filter((name) =>
      existsSync(join("/etc", name)),
    ))
      expect(paths).toContain(`./${path}`);
    for (const path of ["shadow", "ssh", "npmrc", "pip.conf", "gitconfig", "environment", "maven/settings.xml"])
      expect(paths).not.toContain(`./${path}`);
  });

  it.skipIf(!isInstalled("javac", "-version"))("runs Java with TLS", async () => {
    const program =
      "class T { public static void main(String[] a) throws Exception { System.out.println(javax.net.ssl.SSLContext.getDefault().getProtocol()); } }";
    expect(await place.run(`echo '${program}' > T.java && java T.java 2>&1`)).toBe("Default");
  });

  it("has no user namespaces", async () => {
    expect(await place.run("unshare --user true 2> /dev/null || echo refused")).toBe("refused");
  });

  // Numbers of calls are an architecture's own; git brings perl, which makes any call.
  const calls: readonly [name: string, call: string, answer: string][] = [
    ["keys of the kernel", "250, 0, -3, 0", "not permitted"],
    ["io_uring", "425, 8, 0", "not permitted"],
    ["programs in the kernel", "321, 0, 0, 0", "not permitted"],
    ["mounts", "165, 0, 0, 0, 0, 0", "not permitted"],
    ["new namespaces by unshare", "272, 0x10000000", "not permitted"],
    ["new namespaces by clone", "56, 0x10000011, 0, 0, 0, 0", "not permitted"],
    ["namespaces of others", "308, 0, 0", "not permitted"],
    ["clone3, whose flags can't be seen", "435, 0, 0", "not implemented"],
    ["files by handle", "304, 0, 0, 0", "not permitted"],
    ["userfaultfd", "323, 0", "not permitted"],
    ["performance counters", "298, 0, 0, 0, 0, 0", "not permitted"],
    ["modules", "313, 0, 0, 0", "not permitted"],
    ["virtual machine sockets", "41, 40, 1, 0", "not supported"],
    ["packet sockets", "41, 17, 3, 0", "not supported"],
    ["sockets to the kernel's crypto", "41, 38, 5, 0", "not supported"],
    ["raw sockets", "41, 2, 3, 1", "not permitted"],
    ["the x32 interface", "0x40000027", "not permitted"],
    ["typing into a terminal", "16, 0, 0x5412, 0", "not permitted"],
    ["tracing of processes outside", `101, 16, ${process.pid}, 0, 0`, "not permitted"],
  ];
  it.skipIf(process.arch !== "x64").each(calls)("refuses %s", async (_, call, answer) => {
    const said = await place.run(`perl -e '$! = 0; my $r = syscall(${call}); print lc("$r $!")'`);
    expect(said).toContain("-1 ");
    expect(said).toMatch(
      answer === "not implemented"
        ? /not implemented/u
        : answer === "not supported"
          ? /not supported/u
          : /not permitted|no such process/u,
    );
  });

  it("lets git, node and what they build on work under its filter", async () => {
    const said = await place.run(
      `cd $(mktemp -d) && git init -q && echo a > a && git add a && git -c user.name=x -c user.email=x@example.com commit -qm a && git log --format=%s && node -e "
        const net = require('node:net');
        const server = net.createServer((s) => s.end('served')).listen(0, '127.0.0.1', () => {
          net.connect(server.address().port, '127.0.0.1').on('data', (d) => (console.log(String(d)), server.close()));
        });
        new (require('node:worker_threads').Worker)('0', { eval: true });
        console.log(Object.keys(require('node:os').networkInterfaces()).join());"`,
    );
    expect(said.split("\n").toSorted()).toEqual(["a", "lo", "served"]);
  });

  it("can write to its own folders only", async () => {
    const seen = await place.run("find / -path /proc -prune -o -writable -type d -print 2> /dev/null; true");
    // /tmp is its own, and with it the folders on the way to what these tests put there.
    const shared = new Set(["/tmp", "/dev/shm", "/dev/pts", place.data]);
    const folders = seen
      .split("\n")
      .filter((folder) => !shared.has(folder) && (folder.startsWith(`${place.data}/`) || !folder.startsWith("/tmp/")));
    expect(folders.toSorted((one, other) => one.localeCompare(other))).toEqual([place.home, place.workspace]);
    await expect(place.run("touch /usr/x")).rejects.toThrow(/Read-only|Permission/u);
  });

  it("shows nothing of the machine but what is named", async () => {
    await writeFile(join(place.data, "other"), "secret");
    const seen = await place.run(
      `ls -a / /etc /dev ${place.data}; ls /proc | grep -c '^[0-9]'; hostname; ls ${process.cwd()} /root /home /var /run /sys 2>&1; cat /etc/shadow 2>&1; true`,
    );
    expect(seen).not.toMatch(/^(?:root|home|var|run|sys|boot|mnt|srv|shadow|other)$/mu);
    expect(seen).toContain("offstage");
    expect(Number(/^\d+$/mu.exec(seen)?.[0])).toBeLessThan(10);
  });

  it("keeps what is named to be read from being written, by either name of it", async () => {
    const folder = join(place.data, "tools");
    await mkdir(folder, { mode: 0o755 });
    await writeFile(join(folder, "tool"), "works");
    await symlink(folder, join(place.data, "link"));
    const readOnly = [join(place.data, "link"), join(place.data, "missing")];
    expect(await place.run(`cat ${place.data}/link/tool ${folder}/tool`, { readOnly })).toBe("worksworks");
    await expect(place.run(`echo x > ${folder}/tool`, { readOnly })).rejects.toThrow(/Read-only|Permission/u);
  });

  it("gives no program of its own the environment of the command", async () => {
    const value = `value-${uniqueMark()}`;
    const environment = { LD_PRELOAD: `/${value}.so`, BASH_ENV: `$(echo ${value})` };
    const child = sandbox.start(place.request("echo ready; cat", { environment }));
    await firstLine(child.stdout);
    const outside = readdirSync("/proc").filter((pid) => {
      const read = (file: string): string => {
        try {
          return readFileSync(`/proc/${pid}/${file}`, "utf8");
        } catch {
          return "";
        }
      };
      const program = read("comm").trim();
      return ["bwrap", "setpriv", "env"].includes(program) && `${read("environ")}${read("cmdline")}`.includes(value);
    });
    child.stdin.end();
    await child.exited;
    expect(outside).toEqual([]);
  });

  it("does not take a program for one of its own because the agent named it so", async () => {
    await place.run(
      "for name in setpriv bwrap env sh; do printf '#!/bin/sh\\nid -u > stolen\\n' > $name; chmod +x $name; done",
    );
    await place.run("true", { environment: { PATH: `${place.workspace}:/usr/bin:/bin` } }).catch(() => undefined);
    expect(await place.run("cat stolen 2> /dev/null || echo none")).not.toBe("0");
  });

  it("leaves nothing when the server itself is killed", async () => {
    const mark = uniqueMark();
    const server = spawn(
      process.execPath,
      [join(import.meta.dirname, "hold-process.ts"), place.workspace, place.home, mark],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    await firstLine(server.stdout);
    await waitFor(() => running(mark).length > 0, "what it started runs");
    server.kill("SIGKILL");
    await waitFor(() => running(mark).length === 0, "everything inside is gone");
  });

  it("ends at the next start what a server left that was killed while bubblewrap began", async () => {
    const mark = uniqueMark();
    const left = () => commandLines().filter((line) => line.startsWith("bwrap ") && line.includes(mark));
    const server = spawn(process.execPath, [join(import.meta.dirname, "hold-beginning.ts"), place.home, mark], {
      stdio: "inherit",
    });
    await waitFor(() => left().length === 2, "bubblewrap and its child, which waits for it");
    server.kill("SIGKILL");
    await waitFor(() => left().length === 1, "bubblewrap is gone, and its child is not");
    const own = uniqueMark();
    const aborting = new AbortController();
    const child = sandbox.start(place.request(`exec sleep ${own}`, { signal: aborting.signal }));
    await waitFor(() => running(own).length === 1, "what this process started runs");
    const next = createBubblewrap().sweeper;
    await next.start();
    await waitFor(() => left().length === 0, "what was left is gone");
    await next.stop();
    expect(running(own)).toHaveLength(1);
    aborting.abort();
    await child.exited;
  });
});
