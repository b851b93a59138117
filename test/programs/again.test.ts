import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { FailedTest } from "../count-reporter.ts";

const root = join(import.meta.dirname, "../..");
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-again-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function again(failed: readonly FailedTest[] | null): Promise<{ code: number; said: string }> {
  const list = join(folder, "failed.json");
  await writeFile(list, failed === null ? "" : JSON.stringify(failed));
  return new Promise((resolve) => {
    execFile(process.execPath, ["test/again.ts", list], { cwd: root }, (error, stdout) => {
      resolve({ code: Number(error?.code ?? 0), said: stdout });
    });
  });
}

const quick = { file: "src/domain/time/token-bucket.test.ts", test: "a name" };

test("a test that failed and passes alone is reported as unsteady", async () => {
  const { code, said } = await again([quick]);
  expect([code, said]).toEqual([0, expect.stringContaining(`unsteady: ${quick.file} > a name`)]);
  expect(said).toContain("1 passed, 0 failed");
});

test("what fails again fails", async () => {
  const { code, said } = await again([quick, { file: "src/no-such.test.ts", test: "another" }]);
  expect([code, said]).toEqual([1, expect.stringContaining("failed: src/no-such.test.ts > another")]);
  expect(said).toContain("unsteady: ");
});

test.each([
  ["a run that did not end", null],
  ["a run in which nothing failed, and that failed all the same", []],
  ["failures in many files", ["a", "b", "c", "d"].map((name) => ({ ...quick, file: `src/${name}.test.ts` }))],
  ["a file that could not be loaded", [{ ...quick, test: null }]],
])("%s is not tried again", async (_, failed) => {
  expect(await again(failed)).toEqual({ code: 1, said: "" });
});
