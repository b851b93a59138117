import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { createObjectStore, type ObjectStore } from "../../src/objects/object-store.ts";
import { createLogger } from "../../src/observability.ts";
import { keepHouse } from "../../src/worker/background/housekeeping.ts";
import { pruneWorkspaces } from "../../src/worker/background/prune-workspaces.ts";
import { createSharedCheckouts } from "../../src/worker/checkouts/shared-checkouts.ts";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession } from "../store/fixtures.ts";
import { startS3Server } from "../objects/s3-server.ts";

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

function house(objects: ObjectStore | null = null) {
  return {
    database: testDatabase.database,
    logger: createLogger("silent"),
    objects,
    folders: createSessionFolders(data),
    mirrors: createMirrors({ dataDirectory: data, allowLocalRepositories: false }),
    checkouts: createSharedCheckouts({ dataDirectory: data, asked: "auto", sandbox: { kind: "none" } }),
    recordingsDirectory: join(data, "recordings"),
    retention: readConfig({ OFFSTAGE_DATA: data }).retention,
    hasRoom: () => Promise.resolve(true),
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
  const counts = await keepHouse(house(), new AbortController().signal);
  expect(counts).toMatchObject({ recordings: 1, events: 0, jobs: 0, mirrors: 0 });
  expect(counts).not.toHaveProperty("audit");
  expect(existsSync(file)).toBe(false);
});

test("what is in the object store is removed with the rest, and its failure keeps nothing else", async () => {
  const s3 = await startS3Server();
  try {
    const { objects: settings } = readConfig(s3.variables);
    if (settings === null) throw new Error("nothing is configured");
    const objects = createObjectStore(settings, { requestMs: 20_000, totalMs: 0, putMs: 0 });
    await testDatabase.database.pool.query(
      "insert into stored_object (key, bucket, bytes, used_at) values ('a', $1, 1, now() - interval '2 hours')",
      [objects.bucket],
    );
    s3.fail("DELETE", 503);
    const failed = await keepHouse(house(objects), new AbortController().signal);
    expect(failed).not.toHaveProperty("objects");
    expect(failed).toMatchObject({ checkpoints: 0, mirrors: 0 });
    s3.repair();
    await testDatabase.database.pool.query("update stored_object set removing_since = now() - interval '11 minutes'");
    expect(await keepHouse(house(objects), new AbortController().signal)).toMatchObject({ objects: 1 });
  } finally {
    await s3.close();
  }
});

test("once the server stops nothing more is begun", async () => {
  const file = await oldRecording();
  expect(await keepHouse(house(), AbortSignal.abort())).toEqual({});
  expect(existsSync(file)).toBe(true);
});

test("a worker that stops removes no more folders than the one under way", async () => {
  const services = house();
  const { folders } = services;
  const stopped = new AbortController();
  const left = [1, 2, 3].map(() => join(data, "sessions", `removed-${crypto.randomUUID()}`));
  for (const folder of left) await mkdir(folder, { recursive: true });
  const stopping = {
    ...folders,
    removeForgotten: async (sessionId: string) => {
      stopped.abort();
      await folders.removeForgotten(sessionId);
    },
  };
  expect(await pruneWorkspaces({ ...services, folders: stopping }, 14, stopped.signal)).toBe(1);
  expect(left.filter((folder) => existsSync(folder))).toHaveLength(2);
});

test("what a session left here before another worker had it is removed, and not what it works in now", async () => {
  const services = house();
  const { folders } = services;
  const organizationId = await addOrganization(testDatabase.database);
  const { id } = await addSession(testDatabase.database, organizationId, { repositories: [] });
  const { workspace } = await folders.begin(id);
  await writeFile(join(workspace, "new.txt"), "");
  const aside = join(data, "sessions", `removed-${id}`);
  await mkdir(join(aside, "workspace"), { recursive: true });

  expect(await pruneWorkspaces(services, 14, new AbortController().signal)).toBe(1);
  expect(existsSync(aside)).toBe(false);
  expect(existsSync(join(workspace, "new.txt"))).toBe(true);
});
