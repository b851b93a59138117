import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { createRepository, type Repository } from "./repository.ts";
import { runProgram, shells, useFolder } from "./run.ts";

const folder = useFolder();

describe.each(shells)("run-gate.sh in %s", (shell) => {
  /** Runs a gate whose event is `{"number": 7}`. @returns how it ended, with the last line of stderr */
  async function gate(script: string) {
    await writeFile(join(folder.path, "gate"), script);
    await writeFile(join(folder.path, "event.json"), '{"number": 7}');
    const environment = { HOME: folder.path, OFFSTAGE_EVENT: join(folder.path, "event.json") };
    const run = { shell, cwd: folder.path, arguments: ["gate", "the-mark"], environment };
    const { code, stdout, stderr } = await runProgram("worker/steps/run-gate.sh", run);
    return { code, stdout: stdout.toString(), last: stderr.trimEnd().split("\n").at(-1) };
  }

  test("gives the script the event, and tells its code behind the mark", async () => {
    expect(await gate("cat; exit 3")).toEqual({ code: 3, stdout: '{"number": 7}', last: "the-mark 3" });
    expect(await gate("true")).toEqual({ code: 0, stdout: "", last: "the-mark 0" });
  });

  test("ends at the first command that fails, also in a pipe", async () => {
    expect(await gate("echo one; false | cat; echo two")).toEqual({ code: 1, stdout: "one\n", last: "the-mark 1" });
  });

  test("runs the script with the interpreter that its first line names", async () => {
    const script = `#!${process.execPath}\nconsole.log(JSON.parse(require("fs").readFileSync(0, "utf8")).number);`;
    expect(await gate(script)).toEqual({ code: 0, stdout: "7\n", last: "the-mark 0" });
  });
});

describe("settle-gate.cjs", () => {
  let repository: Repository;
  beforeEach(async () => {
    repository = await createRepository(folder.path);
  });

  async function settle(before: string | null, undo: boolean): Promise<string> {
    const { base, environment } = repository;
    const clones = [{ directory: "clone", branch: "work", head: base }];
    const run = { cwd: folder.path, environment, input: JSON.stringify({ clones, before, undo }) };
    const { code, stdout, stderr } = await runProgram("worker/steps/settle-gate.cjs", run);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout.toString();
  }

  test("undoes what a gate did in a clone, and keeps what was there before it", async () => {
    const at = (name: string): string => join(repository.path, name);
    const committed = await readFile(at("a"), "utf8");
    await writeFile(at("mine"), "before the gate");
    const before = await settle(null, false);
    await writeFile(at("a"), "the gate's");
    await mkdir(at("made"));
    await writeFile(at("made/by-the-gate"), "");
    await writeFile(at(".git/info/exclude"), "made\n");
    await settle(before, true);
    expect(await readFile(at("a"), "utf8")).toBe(committed);
    expect([existsSync(at("mine")), existsSync(at("made"))]).toEqual([true, false]);
  });
});
