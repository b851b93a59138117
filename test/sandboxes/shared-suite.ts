import { spawnSync } from "node:child_process";
import { userInfo } from "node:os";
import { text } from "node:stream/consumers";
import { expect, it } from "vitest";
import type { Sandbox } from "../../src/sandboxes/sandbox.ts";
import { waitFor } from "../wait-for.ts";
import { commandLines, firstLine, running, uniqueMark, useSandboxFolders } from "./sandbox-folders.ts";

/**
 * What every sandbox does.
 * @param added variables of the environment that are its own
 */
export function describeSandbox(sandbox: Sandbox, added: readonly string[] = []): void {
  const place = useSandboxFolders(sandbox);

  it("works here", async () => {
    expect(await sandbox.check()).toBeNull();
  });

  it("runs a command in its workspace, with its input, output and exit code", async () => {
    const child = sandbox.start(place.request("cat; pwd; echo wrong >&2; exit 3"));
    child.stdin.end("hello\n");
    const [said, complained, ended] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    expect([said, complained, ended]).toEqual([`hello\n${place.workspace}\n`, "wrong\n", { code: 3, signal: null }]);
    expect(await place.run("pwd", { workingDirectory: place.home })).toBe(place.home);
  });

  it("lets it write to workspace and home, and keeps what was written", async () => {
    await place.run("echo a > a; echo b > $HOME/b; echo c > /tmp/offstage-test && rm /tmp/offstage-test", {
      environment: { HOME: place.home },
    });
    expect(await place.run(`cat a ${place.home}/b`)).toBe("a\nb");
  });

  it("gives it the environment that is wanted and no other", async () => {
    process.env["OFFSTAGE_TEST_SECRET"] = "secret";
    const seen = await place.run("env", { environment: { WANTED: "a 'b'\n$(c) \\\"" } });
    delete process.env["OFFSTAGE_TEST_SECRET"];
    expect(seen).toContain("WANTED=a 'b'\n$(c) \\\"");
    const names = [...seen.matchAll(/^([A-Za-z_]+)=/gmu)]
      .map((match) => match[1] ?? "")
      .toSorted((one, other) => one.localeCompare(other));
    expect(
      names.filter((name) => !["PWD", "OLDPWD", "SHLVL", "_", "OFFSTAGE_PROCESS", ...added].includes(name)),
    ).toEqual(["PATH", "WANTED"]);
  });

  it("has node and git", async () => {
    expect(await place.run(`node --print process.version; git --version`)).toContain(process.version);
  });

  it("has an account for its user, with its home, that programs find by id and by name", async () => {
    const isNamed = sandbox.isolates ? "agent" : userInfo().username;
    const home = sandbox.isolates ? place.home : userInfo().homedir;
    const said = await place.run(
      `id -un; node --print 'const i = os.userInfo(); i.username + " " + i.homedir'; perl -e 'print +(getpwuid($<))[0] . " " . (getpwnam("${isNamed}"))[7] . " " . getgrgid($( + 0) . "\n"'; ls -ld / | cut -d' ' -f3`,
    );
    expect(said.split("\n")).toEqual([isNamed, `${isNamed} ${home}`, `${isNamed} ${home} ${isNamed}`, "root"]);
  });

  it.skipIf(spawnSync("ssh", ["-V"]).error !== undefined)("has an account by which ssh starts", async () => {
    // ssh refuses to start for a user id without an account; `-G` prints its settings and connects to nothing.
    if ((await place.run("command -v ssh || echo none")) === "none") return;
    expect(await place.run("ssh -G example.com | grep -i '^user '")).toMatch(/^user /u);
  });

  it("puts no value of the environment on a command line", async () => {
    const child = sandbox.start(place.request("echo up; sleep 1000", { environment: { TOKEN: "token-not-for-argv" } }));
    await firstLine(child.stdout);
    expect(commandLines().some((line) => line.includes("sleep 1000"))).toBe(true);
    expect(commandLines().filter((line) => line.includes("token-not-for-argv"))).toEqual([]);
    child.kill();
    await child.exited;
  });

  it("reports a missing command by its exit, not by an exception", async () => {
    const child = sandbox.start({ ...place.request(""), command: "no-such-program", arguments: [] });
    child.stdin.end();
    child.stdout.resume();
    await text(child.stderr).catch(() => "");
    expect((await child.exited).code).not.toBe(0);
  });

  const daemons = {
    "in the background": "sleep MARK &",
    "in a session of its own": "setsid sleep MARK > /dev/null 2>&1 < /dev/null &",
    "twice removed": "(setsid sh -c 'sleep MARK & sleep MARK' > /dev/null 2>&1 < /dev/null &);",
  };
  it.each(Object.entries(daemons))(
    "ends what it started %s, when it is killed and when it ends by itself",
    async (_name, script) => {
      for (const last of ["sleep MARK", "true"]) {
        const mark = uniqueMark();
        const controller = new AbortController();
        const request = place.request(`${script} echo up; ${last}`.replaceAll("MARK", mark));
        const child = sandbox.start({ ...request, signal: controller.signal });
        child.stdin.end();
        child.stderr.resume();
        await firstLine(child.stdout);
        if (last !== "true") {
          await waitFor(() => running(mark).length > 0, "what it started runs");
          controller.abort();
          child.kill();
        }
        await child.exited;
        expect(running(mark)).toEqual([]);
        child.kill();
      }
    },
  );

  it("does not start once the run was stopped", () => {
    expect(() => sandbox.start({ ...place.request("true"), signal: AbortSignal.abort(new Error("stopped")) })).toThrow(
      "stopped",
    );
  });
}
