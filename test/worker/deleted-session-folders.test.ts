import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { erasureChannel } from "../../src/store/organization-data/erase.ts";
import { deleteSession } from "../../src/store/sessions/delete-session.ts";
import { createRemovalOfDeleted } from "../../src/worker/background/deleted-sessions.ts";
import { createErasures } from "../../src/worker/background/erasures.ts";
import { createSharedCheckouts } from "../../src/worker/checkouts/shared-checkouts.ts";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { createTestDatabase } from "../database.ts";
import { addOrganization, addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

test("a session that is deleted while its worker still saves its diff keeps its folders until then", async () => {
  const testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  const data = await mkdtemp(join(tmpdir(), "offstage-deleted-"));
  const logger = createLogger("silent");
  const folders = createSessionFolders(data);
  const mirrors = createMirrors({ dataDirectory: data, allowLocalRepositories: false });
  const order: string[] = [];
  const saving = Promise.withResolvers<undefined>();
  const worker = createWorker({
    database,
    logger,
    metrics: createMetrics(),
    id: "worker",
    concurrency: 1,
    leaseMs: 60_000,
    maxRunningPerOrganization: 1,
    async runSession({ sessionId }) {
      const { workspace } = await folders.begin(sessionId);
      await mkdir(join(workspace, "app"));
      order.push("works");
      await saving.promise;
      // As a program that reads the clone and writes beside it.
      await writeFile(join(workspace, "app/saved"), "");
      order.push("saved");
    },
    runJob: () => Promise.resolve(),
  });
  const untilOver = async (id: string): Promise<void> => {
    order.push("asked");
    await worker.untilOver(id);
  };
  const recordingsDirectory = join(data, "recordings");
  const removal = createRemovalOfDeleted({ database, logger, folders, mirrors, recordingsDirectory, untilOver });
  try {
    await worker.start();
    await removal.start();
    const organizationId = await addOrganization(database);
    const { id } = await addSession(database, organizationId, { repositories: [] });
    await waitFor(() => order.includes("works"), "the worker works on it");
    // What a cancel leaves that took longer than it may.
    await database.pool.query(
      "update session set status = 'cancelled', worker = null, lease_until = null where id = $1",
      [id],
    );
    await deleteSession(database, organizationId, id);
    await waitFor(() => order.includes("asked"), "the worker heard of the deletion");
    expect(existsSync(folders.pathsOf(id).workspace)).toBe(true);
    saving.resolve(undefined);
    await waitFor(() => !folders.isKept(id), "the folders are removed");
    expect(order).toEqual(["works", "asked", "saved"]);
  } finally {
    saving.resolve(undefined);
    await removal.stop();
    await worker.stop();
    await testDatabase.close();
    await rm(data, { recursive: true, force: true });
  }
});

test("so does one of an organization that was erased, and nothing of it is left", async () => {
  const testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  const data = await mkdtemp(join(tmpdir(), "offstage-erased-"));
  const folders = createSessionFolders(data);
  const attempt = Promise.withResolvers<void>();
  const asked: string[] = [];
  const markFile = join(data, "erased");
  const erasures = createErasures({
    database,
    logger: createLogger("error"),
    objects: null,
    folders,
    mirrors: createMirrors({ dataDirectory: data, allowLocalRepositories: false }),
    checkouts: createSharedCheckouts({ dataDirectory: data, asked: "auto", sandbox: { kind: "none" } }),
    recordingsDirectory: join(data, "recordings"),
    environmentsDirectory: join(data, "environments"),
    markFile,
    untilOver: (id) => {
      asked.push(id);
      return attempt.promise;
    },
  });
  const id = crypto.randomUUID();
  try {
    await folders.begin(id);
    await database.pool.query("insert into erasure (organization_id, finished_at) values (gen_random_uuid(), now())");
    void erasures.start();
    await waitFor(() => asked.includes(id), "the worker looked for what is left of it");
    expect(folders.isKept(id)).toBe(true);
    expect(existsSync(markFile)).toBe(false);
    attempt.resolve();
    await waitFor(() => existsSync(markFile), "its disk is clean");
    expect(folders.isKept(id)).toBe(false);
  } finally {
    attempt.resolve();
    await erasures.stop();
    await testDatabase.close();
    await rm(data, { recursive: true, force: true });
  }
});

test.each([
  ["recordings", "can't be listed", "recordings"],
  ["results of setups", "can't be listed", "environments"],
  ["a mirror", "is broken", "mirrors/broken.git/file"],
])("a disk on which %s %s does not count as clean after an erasure, until it is", async (_what, _how, path) => {
  const testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  const data = await mkdtemp(join(tmpdir(), "offstage-erased-"));
  const markFile = join(data, "erased");
  const lines: string[] = [];
  const erasures = createErasures({
    database,
    logger: pino({ level: "warn" }, { write: (line) => void lines.push(line) }),
    objects: null,
    folders: createSessionFolders(data),
    mirrors: createMirrors({ dataDirectory: data, allowLocalRepositories: false }),
    checkouts: createSharedCheckouts({ dataDirectory: data, asked: "auto", sandbox: { kind: "none" } }),
    recordingsDirectory: join(data, "recordings"),
    environmentsDirectory: join(data, "environments"),
    markFile,
    untilOver: () => Promise.resolve(),
  });
  const failed = () => lines.some((line) => line.includes("could not erase an organization; will retry"));
  try {
    await mkdir(dirname(join(data, path)), { recursive: true });
    await writeFile(join(data, path), "no folder");
    await database.pool.query("insert into erasure (organization_id, finished_at) values (gen_random_uuid(), now())");
    await erasures.start();
    await waitFor(failed, "the first round has failed");
    expect(existsSync(markFile)).toBe(false);
    await rm(join(data, path.split("/").slice(0, 2).join("/")), { recursive: true });
    database.notify(erasureChannel, "");
    await waitFor(() => existsSync(markFile), "its disk is clean");
  } finally {
    await erasures.stop();
    await testDatabase.close();
    await rm(data, { recursive: true, force: true });
  }
});
