import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, glob, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type * as programTexts from "../../src/programs/program-text.ts";
import { shells } from "./run.ts";

const root = join(import.meta.dirname, "../..");
const src = join(root, "src");
const programs = await filesOf(src, "**/*.{sh,cjs,pl}");

async function filesOf(folder: string, pattern: string): Promise<string[]> {
  const found: string[] = [];
  for await (const file of glob(pattern, { cwd: folder })) found.push(file);
  return found.toSorted();
}

/** Programs that the files of a folder start, by the starting file and by their own path, both from the folder. */
async function startedIn(folder: string, extension: "ts" | "js") {
  const started: { starter: string; name: string; program: string }[] = [];
  for (const starter of await filesOf(folder, `**/*.${extension}`)) {
    const text = await readFile(join(folder, starter), "utf8");
    // Those of setup/script.ts are named where they are asked for.
    for (const [, name = ""] of text.matchAll(/"([a-z-]+\.(?:sh|cjs|pl))"/gu))
      started.push({ starter, name, program: join(dirname(starter), name) });
  }
  return started;
}

test("there are programs, and none that nothing starts", async () => {
  expect(programs.length).toBeGreaterThan(10);
  const started = await startedIn(src, "ts");
  expect([...new Set(started.map(({ program }) => program))].toSorted()).toEqual(programs);
});

test("are each run alone by a test of this folder", async () => {
  const tests = (await readdir(import.meta.dirname)).filter((name) => name.endsWith(".test.ts"));
  const texts = await Promise.all(tests.map((name) => readFile(join(import.meta.dirname, name), "utf8")));
  // Those in Perl need overlays, or a sandbox that runs.
  const alone = programs.filter((program) => /\.(?:sh|cjs)$/u.test(program));
  const untested = alone.filter((program) => !texts.some((text) => text.includes(`${basename(program)}"`)));
  expect(untested).toEqual([]);
});

test("are read when a server starts, so that a version that is installed under it does not mix with its own", async () => {
  const copy = await mkdtemp(join(tmpdir(), "offstage-programs-"));
  try {
    await cp(join(src, "programs"), join(copy, "programs"), { recursive: true });
    await mkdir(join(copy, "worker"));
    const program = join(copy, "worker/step.sh");
    await writeFile(program, "echo of this version\n");
    const { programText: text, readProgramTexts } = (await import(
      pathToFileURL(join(copy, "programs/program-text.ts")).href
    )) as typeof programTexts;
    await readProgramTexts();
    await writeFile(program, "echo of the next version\n");
    expect(text(pathToFileURL(join(copy, "worker/step.ts")).href, "step.sh")).toBe("echo of this version\n");
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
});

describe.each(programs)("%s", (program) => {
  test("fits into one argument of a command", async () => {
    const text = await readFile(join(src, program), "utf8");
    // MAX_ARG_STRLEN is 128 KiB; another program may stand in front of it.
    expect(Buffer.byteLength(text)).toBeLessThan(32 * 1024);
    expect(text).not.toContain("\0");
  });
});

describe.each(shells)("%s", (shell) => {
  test.each(programs.filter((program) => program.endsWith(".sh")))("understands %s", (program) => {
    const { status, stderr } = spawnSync(shell, ["-n", join(src, program)], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});

/** Whether the machine has a program that looks for mistakes in programs; without it, its test is said to be skipped. */
const has = (linter: string): boolean => spawnSync(linter, ["--version"]).error === undefined;

test.skipIf(!has("shellcheck"))("have no line of shell that shellcheck warns of", () => {
  const ofShells = programs.filter((program) => program.endsWith(".sh")).map((program) => join(src, program));
  const { status, stdout } = spawnSync("shellcheck", ["--shell=sh", "--severity=info", "--format=gcc", ...ofShells], {
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});

describe.skipIf(!has("perl"))("perl", () => {
  test.each(programs.filter((program) => program.endsWith(".pl")))(
    "warns of nothing in %s, which is strict",
    async (program) => {
      expect(await readFile(join(src, program), "utf8")).toMatch(/^use strict;$/mu);
      const { status, stderr } = spawnSync("perl", ["-wc", program], { cwd: src, encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: `${program} syntax OK\n` });
    },
  );
});

describe("what is built", () => {
  let dist = "";

  beforeAll(async () => {
    dist = await mkdtemp(join(tmpdir(), "offstage-dist-"));
    execFileSync(process.execPath, [join(root, "scripts/build-server.ts"), dist], { stdio: "pipe" });
  });

  afterAll(() => rm(dist, { recursive: true, force: true }));

  test("has each program beside the address of the file that starts it", async () => {
    const text = (path: string) => readFile(path, "utf8");
    for (const program of programs) expect(await text(join(dist, program))).toBe(await text(join(src, program)));
    const kept = new Set<string>();
    for (const file of await filesOf(dist, "**/*.js")) {
      const code = await text(join(dist, file));
      for (const [, path = ""] of code.matchAll(/new URL\("([^"]*)", import\.meta\.url\)/gu))
        kept.add(relative(dist, join(dist, dirname(file), path)));
      // Each of ours has been given its own.
      expect(code.replaceAll(/new URL\("[^"]*", import\.meta\.url\)/gu, "")).not.toMatch(
        /import\.meta\.(?:dir|file)name/u,
      );
    }
    const starters = new Set((await startedIn(src, "ts")).map(({ starter }) => starter.replace(/\.ts$/u, ".js")));
    expect([...starters].filter((starter) => !kept.has(starter))).toEqual([]);
  });

  test("has each program that runs in a process or a thread of its own", async () => {
    const missing: string[] = [];
    let found = 0;
    for (const starter of await filesOf(src, "**/*.ts")) {
      const code = await readFile(join(src, starter), "utf8");
      for (const [, name = ""] of code.matchAll(/programFile\(import\.meta\.url, "([a-z-]+)"\)/gu)) {
        found += 1;
        const built = join(dist, dirname(starter), `${name}.js`);
        if (!existsSync(built)) missing.push(built);
      }
    }
    expect([found > 4, missing]).toEqual([true, []]);
  });

  test("is few files, which Node finds and links one by one", async () => {
    expect((await filesOf(dist, "**/*.js")).length).toBeLessThan(150);
  });

  test("has all SQL that the source has", async () => {
    for (const pattern of ["**/*.sql", "store/sql/*.json"])
      expect(await filesOf(dist, pattern)).toEqual(await filesOf(src, pattern));
  });
});
