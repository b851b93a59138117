import { writeFileSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import type { Reporter, TestModule } from "vitest/node";

/**
 * Ends the run with the files that took longest, what failed, a line each, and its count alone on the last line, for people and for whatever reads the log's end. The file
 * that `OFFSTAGE_FAILED_TESTS` names gets the failed tests, for `again.ts`.
 */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    const failed: string[] = [];
    const list: FailedTest[] = unhandledErrors.map(() => ({ file: "", test: null }));
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const { state, errors = [] } = test.result();
        count[state] += 1;
        if (state !== "failed") continue;
        failed.push(`${module.relativeModuleId} > ${test.fullName}: ${whyOf(errors)}`);
        list.push({ file: module.relativeModuleId, test: test.fullName });
      }
      // A file that could not be loaded has no tests, and has failed all the same.
      if (module.state() === "failed" && !tests.some((test) => test.result().state === "failed")) {
        count.failed += 1;
        failed.push(module.relativeModuleId);
        list.push({ file: module.relativeModuleId, test: null });
      }
    }
    const listOf = process.env["OFFSTAGE_FAILED_TESTS"];
    if (listOf !== undefined) writeFileSync(listOf, JSON.stringify(list));
    const skipped = count.skipped === 0 ? "" : `, ${count.skipped} skipped`;
    const lines = [
      ...longestOf(modules),
      ...failed.map((name) => `failed: ${name}`),
      `${count.passed} passed, ${count.failed} failed${skipped}`,
    ];
    // On the next turn, so that the lines are the last ones after the default reporter's summary.
    setImmediate(() => process.stdout.write(`${lines.join("\n")}\n`));
  }
}

/** So many files are named with their times. */
const longestShown = 25;

/**
 * @returns lines of where the time of a long run went, in seconds of files that run side by side: the sums of folders, then the longest files;
 *   none for a run of few files
 */
function longestOf(modules: readonly TestModule[]): string[] {
  if (modules.length <= longestShown) return [];
  const files = modules
    .map((module) => ({ name: module.relativeModuleId, seconds: module.diagnostic().duration / 1_000 }))
    .toSorted((a, b) => b.seconds - a.seconds);
  const folders = new Map<string, number>();
  for (const { name, seconds } of files) {
    const folder = name.split("/").slice(0, 2).join("/");
    folders.set(folder, (folders.get(folder) ?? 0) + seconds);
  }
  const ofFolders = [...folders].toSorted(([, a], [, b]) => b - a).slice(0, longestShown);
  return [
    `time: ${ofFolders.map(([name, seconds]) => `${name} ${seconds.toFixed(0)} s`).join(", ")}`,
    ...files.slice(0, longestShown).map(({ name, seconds }) => `${seconds.toFixed(0).padStart(5)} s ${name}`),
  ];
}

/** A test that failed; `test` is null if it is none: a file that could not be loaded, or an error outside of all tests. */
export interface FailedTest {
  readonly file: string;
  readonly test: string | null;
}

/** Most characters of a failure that are printed: enough to go on without what stands far above. */
const mostOfReason = 600;

/** @returns the beginnings of what a test failed of, on one line */
function whyOf(errors: readonly { readonly message: string }[]): string {
  return stripVTControlCharacters(errors.map(({ message }) => message).join(" | "))
    .replaceAll(/\s+/gu, " ")
    .slice(0, mostOfReason);
}
