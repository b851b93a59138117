import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readConfig } from "../../src/config.ts";
import { createLogger } from "../../src/observability.ts";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import { tidy } from "../../src/worker/housekeeping.ts";
import { createWorkspaces } from "../../src/worker/workspace.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

let data: string;
let testDatabase: TestDatabase;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "offstage-housekeeping-"));
  testDatabase = await createTestDatabase();
});

afterEach(async () => {
  await testDatabase.close();
  await rm(data, { recursive: true, force: true });
});

function house() {
  return {
    database: testDatabase.database,
    logger: createLogger("silent"),
    objects: null,
    workspaces: createWorkspaces({
      dataDirectory: data,
      sandbox: createUnsandboxed(),
      author: { name: "Offstage", email: "offstage@localhost" },
      allowLocalRepositories: false,
    }),
    recordingsDirectory: join(data, "recordings"),
    retention: readConfig({ OFFSTAGE_DATA: data }).retention,
  };
}

async function oldRecording(): Promise<string> {
  const file = join(data, "recordings", "old.jsonl");
  await mkdir(join(data, "recordings"));
  await writeFile(file, "{}\n");
  const then = new Date(Date.now() - 60 * 24 * 60 * 60 * 1_000);
  await utimes(file, then, then);
  return file;
}

test("what can't be removed now does not keep the rest from being removed", async () => {
  const file = await oldRecording();
  await testDatabase.database.pool.query("drop table audit_entry");
  const counts = await tidy(house(), new AbortController().signal);
  expect(counts).toMatchObject({ recordings: 1, events: 0, jobs: 0, mirrors: 0 });
  expect(counts).not.toHaveProperty("audit");
  expect(existsSync(file)).toBe(false);
});

test("once the server stops nothing more is begun", async () => {
  const file = await oldRecording();
  expect(await tidy(house(), AbortSignal.abort())).toEqual({});
  expect(existsSync(file)).toBe(true);
});
