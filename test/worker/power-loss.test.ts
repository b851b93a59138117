import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readWorkerId } from "../../src/server/worker-id.ts";
import { createEnvironmentCache } from "../../src/worker/disk/environment-cache.ts";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";

/** A machine that loses its power leaves files empty that were written and renamed just before. */
let data: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "offstage-power-"));
});

afterEach(() => rm(data, { recursive: true, force: true }));

test("a session's folders whose record is empty are made again", async () => {
  const folders = createSessionFolders(data);
  const id = crypto.randomUUID();
  await folders.begin(id);
  for (const record of ["prepared.json", "setup.json", "moved.json"]) {
    await writeFile(join(data, "sessions", id, record), "");
  }
  expect(await folders.started(id)).toBe(null);
  expect(await folders.isSetUp(id, "one")).toBe(false);
  expect(await folders.visiblePaths(id)).toEqual(folders.pathsOf(id));
});

test("a setup's result whose record is empty is made again", async () => {
  const cache = createEnvironmentCache({ directory: data, maximumBytes: 1_000_000 });
  await mkdir(join(data, "key"));
  for (const [name, content] of [
    ["home.tar", "content"],
    ["work.tar", "content"],
    ["made-at.json", ""],
  ] as const)
    await writeFile(join(data, "key", name), content);
  expect(await cache.find("key", () => mkdtemp(join(data, "held-")))).toBe(null);
});

test("a worker whose name is empty gets another, and keeps that", async () => {
  await writeFile(join(data, "worker-id"), "");
  const id = await readWorkerId(data);
  expect(id).not.toBe("");
  expect(await readWorkerId(data)).toBe(id);
});
