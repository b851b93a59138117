import { execFileSync, spawnSync } from "node:child_process";
import { cp, glob, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
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

describe("what is built", () => {
  let dist = "";

  beforeAll(async () => {
    dist = await mkdtemp(join(tmpdir(), "offstage-dist-"));
    execFileSync(process.execPath, [join(root, "scripts/build-server.ts"), dist], { stdio: "pipe" });
  });

  afterAll(() => rm(dist, { recursive: true, force: true }));

  test("finds each program beside the file that starts it", async () => {
    const reader = pathToFileURL(join(dist, "programs/program-text.js")).href;
    const { programText: read } = (await import(reader)) as { programText: typeof programTexts.programText };
    const started = await startedIn(dist, "js");
    for (const { starter, name, program } of started)
      expect(read(pathToFileURL(join(dist, starter)).href, name)).toBe(await readFile(join(src, program), "utf8"));
    expect(new Set(started.map(({ program }) => program))).toEqual(new Set(programs));
  });

  test("has all SQL that the source has", async () => {
    for (const pattern of ["**/*.sql", "store/sql/*.json"])
      expect(await filesOf(dist, pattern)).toEqual(await filesOf(src, pattern));
  });
});
