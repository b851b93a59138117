import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import type { Sandbox, SandboxedProcess } from "../../src/sandboxes/sandbox.ts";
import { writeHarnessFiles } from "../../src/worker/sandboxed/harness-files.ts";
import { runCommand } from "../../src/worker/sandboxed/run-command.ts";
import { runInSandbox } from "../../src/worker/sandboxed/run-in-sandbox.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { firstLine, running, uniqueMark, useSandboxFolders } from "../sandboxes/sandbox-folders.ts";

const sandboxes: [string, Sandbox][] = [
  ["bubblewrap", createBubblewrap()],
  ["no sandbox", createUnsandboxed()],
];

describe.each(sandboxes)("a program in %s", (_, sandbox) => {
  const place = useSandboxFolders(sandbox);
  const { signal } = new AbortController();

  function run(
    script: string,
    use: Parameters<typeof runInSandbox>[3] = (child) => void child.stdout.resume(),
    bounds: Partial<Parameters<typeof runInSandbox>[2]> = {},
  ) {
    const { signal: _unused, ...request } = place.request(script);
    return runInSandbox(sandbox, request, { limitMs: hangTimeoutMs, signal, ...bounds }, use);
  }

  test("reads and writes, and tells how it ended", async () => {
    let said = "";
    const end = await run("cat; echo wrong >&2; exit 3", async (child: SandboxedProcess) => {
      child.stdin.end("hello");
      said = await text(child.stdout);
    });
    expect(said).toBe("hello");
    expect(end).toEqual({ code: 3, exceeded: null, timedOut: false, printed: "wrong\n", thrown: null });
  });

  test("is ended at its time, with everything that it started", async () => {
    const mark = uniqueMark();
    const end = await run(`sleep ${mark} & wait`, undefined, { limitMs: 500 });
    expect([end.timedOut, end.thrown, running(mark)]).toEqual([true, null, []]);
    expect(end.code).not.toBe(0);
  });

  test("is ended if its caller fails, which is reported beside how it ended", async () => {
    const mark = uniqueMark();
    const problem = new Error("no room");
    const end = await run(`echo up; sleep ${mark}`, async (child) => {
      await firstLine(child.stdout);
      throw problem;
    });
    expect([end.thrown, end.timedOut, running(mark)]).toEqual([{ error: problem }, false, []]);
    expect(end.code).not.toBe(0);
  });

  test("throws the signal's reason if that ends it, whatever else broke by it", async () => {
    const mark = uniqueMark();
    const controller = new AbortController();
    const reason = new Error("cancelled");
    const ended = run(
      `echo up; sleep ${mark}`,
      async (child) => {
        await firstLine(child.stdout);
        controller.abort(reason);
        throw new Error("the pipe broke");
      },
      { signal: controller.signal },
    );
    await expect(ended).rejects.toBe(reason);
    expect(running(mark)).toEqual([]);
  });

  test("lets its user see that it is over, so that a reader need not wait", async () => {
    const end = await run(
      "sleep 1000",
      (child, over) =>
        new Promise<void>((resolve) => {
          child.stdout.resume();
          over.addEventListener("abort", () => resolve());
        }),
      { limitMs: 200 },
    );
    expect(end.timedOut).toBe(true);
  });

  test("keeps the end of what it prints on stderr alone", async () => {
    const { printed } = await run("yes | head -n 100000 >&2; echo last >&2");
    expect(printed.length).toBeLessThanOrEqual(20_000);
    expect(printed.endsWith("last\n")).toBe(true);
  });
});

describe("a sandbox that does not start, or breaks off", () => {
  const sandbox = createUnsandboxed();
  const place = useSandboxFolders(sandbox);
  const request = (script: string) => {
    const { signal: _unused, ...rest } = place.request(script);
    return rest;
  };
  const bounds = { limitMs: hangTimeoutMs, signal: new AbortController().signal };

  /** As a container's whose engine is away for a while, or refuses. */
  function broken(passes: boolean): Sandbox {
    return {
      ...sandbox,
      start: (asked) => ({
        ...sandbox.start({ ...asked, command: "sh", arguments: ["-c", "exit 127"] }),
        fault: () => ({ why: "the engine did not answer", passes }),
      }),
    };
  }

  test.each([true, false])("is the failure of whatever runs in it, which passes: %s", async (passes) => {
    const failure = {
      code: "sandbox_unavailable",
      passing: passes,
      message: expect.stringContaining("did not answer") as string,
    };
    const reading = (child: SandboxedProcess): void => void child.stdout.resume();
    await expect(runInSandbox(broken(passes), request("true"), bounds, reading)).rejects.toMatchObject(failure);
    const folders = { workspace: place.workspace, home: place.home, signal: bounds.signal };
    await expect(writeHarnessFiles(broken(passes), folders, { "a.txt": "a" })).rejects.toMatchObject(failure);
    await writeHarnessFiles(sandbox, folders, { "a.txt": "a" });
    const run = { sandbox: broken(passes), limits: readConfig({}).limits, signal: bounds.signal };
    const command = { command: "true", arguments: [] };
    await expect(runCommand(run, { ...folders, readOnly: [] }, command, reading)).rejects.toMatchObject(failure);
  });

  test("is not what ended a program at its time", async () => {
    const slow: Sandbox = {
      ...sandbox,
      start: (asked) => ({ ...sandbox.start(asked), fault: () => ({ why: "it was killed", passes: true }) }),
    };
    const end = await runInSandbox(
      slow,
      request("sleep 1000"),
      { ...bounds, limitMs: 300 },
      (child) => void child.stdout.resume(),
    );
    expect(end.timedOut).toBe(true);
  });
});

describe("a program that takes more than it may", () => {
  const sandbox = createBubblewrap();
  const place = useSandboxFolders(sandbox);

  test("is reported with its limit", async () => {
    const { signal, ...request } = place.request("for i in 1 2 3 4 5 6 7 8; do : > file$i; done; sleep 1000");
    const limits = { memoryBytes: 2 ** 30, processes: 100, diskBytes: 40_000_000, files: 3, cpus: 1 };
    const end = await runInSandbox(
      sandbox,
      { ...request, limits },
      { limitMs: hangTimeoutMs, signal },
      (child) => void child.stdout.resume(),
    );
    expect(end).toMatchObject({ exceeded: "files", timedOut: false, thrown: null });
    expect(existsSync(join(place.workspace, "file1"))).toBe(true);
  });
});
