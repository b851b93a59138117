import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { exit } from "node:process";
import type { FailedTest } from "./count-reporter.ts";

/** More files than that are a broken change, and not a race that one run in many loses. All tests of a file may fail by one race. */
const mostAgain = 3;

/**
 * Runs the files again, whole and alone, of the tests that failed of a run with `OFFSTAGE_FAILED_TESTS`, which names the file with their list.
 * What passes now is a fault all the same, since it shows in one run of many: it is printed as unsteady, to be found and mended.
 * @param listOf path of that file
 * @returns the exit code: 0 only if the failed tests were few, and each file passes now
 */
async function again(listOf: string): Promise<number> {
  const text = await readFile(listOf, "utf8").catch(() => "");
  // A run that did not come to its end has no list.
  if (text === "") return 1;
  const failed = JSON.parse(text) as readonly FailedTest[];
  const files = [...new Set(failed.map(({ file }) => file))];
  if (files.length === 0 || files.length > mostAgain || failed.some(({ test }) => test === null)) return 1;
  console.log(`\n${failed.length} failed. Once more, alone: ${files.join(", ")}\n`);
  const codes = new Map<string, number>();
  for (const file of files) codes.set(file, await run(["node_modules/vitest/vitest.mjs", "run", file]));
  for (const { file, test } of failed)
    console.log(`${codes.get(file) === 0 ? "unsteady" : "failed"}: ${file} > ${test}`);
  return Math.max(...codes.values());
}

function run(parameters: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, parameters, { stdio: "inherit" });
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 1));
  });
}

exit(await again(process.argv[2] ?? ""));
