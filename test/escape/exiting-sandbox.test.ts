import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testEnvironment } from "../test-environment.ts";

/**
 * The escape tests themselves, with a program in bubblewrap's place that only exits. Nothing gets out of that, because
 * nothing is in it: a test that passes there would also pass if the sandbox was never tried.
 */
const suites = ["test/escape/host.test.ts", "test/escape/git.test.ts", "test/escape/network.test.ts"];
const sandboxSuites = ["test/sandboxes/sandbox.test.ts", "test/sandboxes/limits.test.ts"];

/** Those that start nothing in bubblewrap, by the beginning of their full names. */
const withoutBubblewrap = [
  "none ",
  "looking ",
  // Refused before anything is started.
  "bubblewrap does not start once the run was stopped",
];

interface Result {
  readonly file: string;
  readonly fullName: string;
  readonly status: string;
  readonly failureMessages: readonly string[];
}

let folder: string;
let results: readonly Result[] = [];

// Only root can put another program in bubblewrap's place, for this one run.
describe.skipIf(process.getuid?.() !== 0)("with a sandbox program that only exits", () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "offstage-exiting-"));
    results = await runWithExitingProgram([...suites, ...sandboxSuites]);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("every escape test fails, since what it tries did not run", () => {
    const escapes = results.filter(({ file }) => suites.some((suite) => file.endsWith(suite)));
    const otherwise = escapes.filter(
      ({ status, failureMessages }) => status !== "failed" || !failureMessages.join("\n").includes("did not run"),
    );
    expect(otherwise.map(({ fullName, status, failureMessages }) => [fullName, status, failureMessages])).toEqual([]);
    expect(escapes.length).toBeGreaterThan(80);
  });

  it("no test of the sandbox passes", () => {
    const passed = results
      .filter(({ status }) => status === "passed")
      .map(({ fullName }) => fullName)
      .filter((name) => !withoutBubblewrap.some((beginning) => name.startsWith(beginning)));
    expect(passed).toEqual([]);
  });
});

/** In a mount namespace of its own, so that all else on the machine keeps its bubblewrap. */
async function runWithExitingProgram(files: readonly string[]): Promise<Result[]> {
  const program = join(folder, "bwrap");
  await copyFile("/bin/true", program);
  const report = join(folder, "report.json");
  const root = join(import.meta.dirname, "../..");
  const command = 'mount --bind "$0" "$(command -v bwrap)" && exec "$@"';
  const vitest = [process.execPath, join(root, "node_modules/vitest/vitest.mjs"), "run", "--project", "integration"];
  const reporting = ["--maxWorkers", "1", "--reporter=json", `--outputFile=${report}`];
  await promisify(execFile)("unshare", ["--mount", "sh", "-c", command, program, ...vitest, ...reporting, ...files], {
    cwd: root,
    env: testEnvironment(),
    maxBuffer: 2 ** 28,
  }).catch((error: unknown) => {
    // Its tests are meant to fail; it has to have said how.
    if ((error as { code?: unknown }).code !== 1) throw error;
  });
  const { testResults } = JSON.parse(await readFile(report, "utf8")) as {
    testResults: { name: string; assertionResults: Omit<Result, "file">[] }[];
  };
  return testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map((result) => ({ ...result, file: name })),
  );
}
