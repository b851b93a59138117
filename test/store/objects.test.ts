import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { ObjectStoreError } from "../../src/domain/errors/errors.ts";
import { createObjectStore, type ObjectStore } from "../../src/objects/object-store.ts";
import { openPiece, pruneCheckpoints, saveCheckpoint } from "../../src/store/checkpoints/checkpoints.ts";
import { holdObjects, putObjects, sweepObjects } from "../../src/store/checkpoints/objects.ts";
import { finishSession, type ClaimedSession } from "../../src/store/queue/claims.ts";
import { LeaseLostError, recoverSessions } from "../../src/store/queue/lease.ts";
import { fileKeyring } from "../../src/store/secrets/keyring.ts";
import { rotateMasterKey } from "../../src/store/secrets/rotation.ts";
import { createVault, type Vault } from "../../src/store/secrets/vault.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { startS3Server, type S3Server } from "../objects/s3-server.ts";
import { waitFor } from "../wait-for.ts";
import { addOrganization, addSession, expireLease, requireClaim } from "./fixtures.ts";

let test: TestDatabase;
let s3: S3Server;
let objects: ObjectStore;
let folder: string;
let vault: Vault;
let claimed: ClaimedSession;
const never = new AbortController().signal;

beforeAll(async () => {
  test = await createTestDatabase();
  s3 = await startS3Server();
  objects = openStore({});
  folder = await mkdtemp(join(tmpdir(), "offstage-objects-"));
  vault = createVault(fileKeyring(join(folder, "master.key")));
});

beforeEach(async () => {
  await addSession(test.database, await addOrganization(test.database));
  claimed = await requireClaim(test.database);
});

afterEach(async () => {
  s3.repair();
  s3.objects.clear();
  s3.requests.splice(0);
  await test.database.pool.query("truncate checkpoint, checkpoint_piece, stored_object");
});

afterAll(async () => {
  await test.close();
  await s3.close();
  await rm(folder, { recursive: true, force: true });
});

/** One that tries nothing again. */
function openStore(variables: Record<string, string>, requestMs = 20_000): ObjectStore {
  const settings = readConfig({ ...s3.variables, ...variables }).objects;
  if (settings === null) throw new Error("nothing is configured");
  return createObjectStore(settings, { requestMs, totalMs: 0, putMs: 0 });
}

/** Saves a checkpoint with a piece of `content`, and gives the piece's id. */
async function save(
  content: Buffer,
  {
    held = claimed,
    by = objects,
    signal = never,
  }: { readonly held?: ClaimedSession; readonly by?: ObjectStore | null; readonly signal?: AbortSignal } = {},
): Promise<string> {
  const id = randomUUID();
  const file = join(folder, id);
  await writeFile(file, content);
  const contentHash = randomUUID();
  const checkpoint = {
    originalPaths: { workspace: "/w", home: "/h" },
    repositories: [],
    files: id,
    contentHash,
    harness: null,
  };
  const taken = { checkpoint, fresh: new Map([[id, file]]) };
  await saveCheckpoint({ database: test.database, vault, objects: by }, held, taken, signal);
  return id;
}

const read = (id: string, by: ObjectStore | null = objects): Promise<Buffer> =>
  buffer(openPiece({ database: test.database, vault, objects: by }, claimed.sessionId, id, never));

/** Keys by the rows of objects, by what refers to them, and in the store. */
async function keys() {
  const of = async (text: string) => (await test.database.pool.query<{ key: string }>(text)).rows.map(({ key }) => key);
  return {
    known: await of("select key from stored_object order by key"),
    used: await of("select object_key as key from checkpoint_piece where object_key is not null order by 1"),
    stored: [...s3.objects.keys()].sort(),
  };
}

/** As if so long had passed. */
async function pass(interval: string): Promise<void> {
  await test.database.pool.query(
    "update stored_object set used_at = used_at - $1::interval, removing_since = removing_since - $1::interval",
    [interval],
  );
}

const sweep = (by = objects): Promise<number> => sweepObjects(test.database, by, never);

it("puts what is large into the object store, sealed, and gives it back", async () => {
  const content = Buffer.concat([Buffer.from("the secret word"), randomBytes(9_000_000)]);
  const id = await save(content);
  expect((await read(id)).equals(content)).toBe(true);
  const { known, used, stored } = await keys();
  expect(stored).toHaveLength(3);
  expect(known).toEqual(stored);
  expect(used).toEqual(stored);
  for (const sealed of s3.objects.values()) expect(sealed.includes("the secret word")).toBe(false);
  const { rows } = await test.database.pool.query<{ bytes: string }>("select bytes from checkpoint");
  expect(Number(rows[0]?.bytes)).toBeGreaterThan(9_000_000);
});

it("leaves what is small in the database, and needs no object store for it", async () => {
  s3.fail("PUT", 503);
  const id = await save(Buffer.from("small"));
  expect((await read(id, null)).toString()).toBe("small");
  expect((await keys()).known).toEqual([]);
});

it("goes on with pieces that are in rows, and with those in objects after the store is no longer used", async () => {
  const content = randomBytes(200_000);
  const inRows = await save(content, { by: null });
  expect((await read(inRows)).equals(content)).toBe(true);
  const inObjects = await save(content);
  const again = await save(content, { by: null });
  expect((await read(again)).equals(content)).toBe(true);
  await expect(read(inObjects)).rejects.toThrow(/is gone/u);
});

it("opens pieces after the master key was rotated", async () => {
  const content = randomBytes(200_000);
  const id = await save(content);
  await rotateMasterKey(test.database, vault);
  expect((await read(id)).equals(content)).toBe(true);
  const later = await save(content);
  expect((await read(later)).equals(content)).toBe(true);
});

it("removes what no checkpoint refers to, after an hour and not before", async () => {
  await save(randomBytes(5_000_000));
  const kept = await save(randomBytes(300_000));
  expect((await keys()).stored).toHaveLength(3);
  expect(await sweep()).toBe(0);
  await pass("59 minutes");
  expect(await sweep()).toBe(0);
  await pass("2 minutes");
  expect(await sweep()).toBe(2);
  const { known, used, stored } = await keys();
  expect(stored).toHaveLength(1);
  expect(known).toEqual(stored);
  expect(used).toEqual(stored);
  expect((await read(kept)).length).toBe(300_000);
});

it("removes the objects of sessions that were over for long", async () => {
  await save(randomBytes(300_000));
  await finishSession(test.database, claimed, { status: "cancelled", summary: null, failure: null });
  expect(await pruneCheckpoints(test.database, 0)).toBe(1);
  await pass("2 hours");
  expect(await sweep()).toBe(1);
  expect(await keys()).toEqual({ known: [], used: [], stored: [] });
});

it("removes more than one batch, and what two workers sweep at once only once", async () => {
  await test.database.pool.query(
    "insert into stored_object (key, bucket, bytes) select 'k' || n, $1, 1 from generate_series(1, 230) as n",
    [objects.bucket],
  );
  await pass("2 hours");
  const counts = await Promise.all([sweep(), sweep()]);
  expect(counts[0] + counts[1]).toBe(230);
  expect((await keys()).known).toEqual([]);
});

it("keeps a worker that lost the session from referring to what it sent, which is removed later", async () => {
  const before = await save(randomBytes(300_000));
  await expireLease(test.database, claimed.sessionId);
  await recoverSessions(test.database, {});
  await requireClaim(test.database);
  await expect(save(randomBytes(400_000))).rejects.toThrow(LeaseLostError);
  expect((await keys()).stored).toHaveLength(2);
  await pass("2 hours");
  expect(await sweep()).toBe(1);
  expect((await read(before)).length).toBe(300_000);
});

it("keeps a worker that slept between an upload and the checkpoint from referring to what is being removed", async () => {
  const before = await save(randomBytes(300_000));
  s3.fail("DELETE", 503);
  const asleep: ObjectStore = {
    ...objects,
    async put(...object) {
      await objects.put(...object);
      await pass("2 hours");
      await expect(sweep()).rejects.toThrow(ObjectStoreError);
    },
  };
  await expect(save(randomBytes(400_000), { by: asleep })).rejects.toThrow(/was removed as too old/u);
  expect((await keys()).used).toHaveLength(1);
  expect((await read(before)).length).toBe(300_000);
});

it("leaves the last checkpoint if the store fails in the middle, and a row for each object that got there", async () => {
  const before = await save(randomBytes(300_000));
  s3.failNext("PUT", 503, "no answer after all");
  const overtime = new AbortController();
  const saving = save(randomBytes(9_000_000), { signal: overtime.signal });
  saving.catch(() => undefined);
  await waitFor(() => s3.objects.size === 3, "two of three are there");
  overtime.abort(new DOMException("over", "TimeoutError"));
  await expect(saving).rejects.toThrow(ObjectStoreError);
  s3.repair();
  const { known, stored } = await keys();
  expect(stored.length).toBeGreaterThan(1);
  expect(known).toEqual(expect.arrayContaining(stored));
  expect((await read(before)).length).toBe(300_000);
  await pass("2 hours");
  await sweep();
  const after = await keys();
  expect(after.known).toEqual(after.used);
  expect(after.stored).toEqual(after.used);
});

it("keeps the rows of what it can't remove, and removes it once the store is back", async () => {
  await save(randomBytes(300_000));
  await save(Buffer.from("small"));
  await pass("2 hours");
  s3.fail("DELETE", 503);
  await expect(sweep()).rejects.toThrow(/answered 503/u);
  expect((await keys()).known).toHaveLength(1);
  s3.repair();
  // Another worker may be at it.
  expect(await sweep()).toBe(0);
  await pass("11 minutes");
  expect(await sweep()).toBe(1);
  expect(await keys()).toEqual({ known: [], used: [], stored: [] });
});

it("forgets no object whose removal was carried out but not heard of", async () => {
  await save(randomBytes(300_000));
  await save(Buffer.from("small"));
  await pass("2 hours");
  s3.failNext("DELETE", "no answer after all");
  await expect(sweep(openStore({}, 2_000))).rejects.toThrow(ObjectStoreError);
  expect(await keys()).toMatchObject({ known: [expect.any(String)], stored: [] });
  await pass("11 minutes");
  expect(await sweep()).toBe(1);
  expect((await keys()).known).toEqual([]);
});

it("refers to nothing that is being removed, and removes nothing that is being referred to", async () => {
  const [first, second] = ["first", "second"] as const;
  const fresh = [first, second].map((key) => ({ key, content: randomBytes(100) }));
  await putObjects(test.database, objects, fresh, never);
  await pass("2 hours");
  let swept = 0;
  await test.database.transaction(async (transaction) => {
    await holdObjects(transaction, [first]);
    // Under way while the first is held, and not referred to yet by what it can see.
    swept = await sweep();
    await transaction.query(
      "insert into checkpoint_piece (session_id, id, position, object_key) values ($1, gen_random_uuid(), 0, $2)",
      [claimed.sessionId, first],
    );
  });
  expect(swept).toBe(1);
  expect(await keys()).toEqual({ known: [first], used: [first], stored: [first] });
  await test.database.pool.query("update stored_object set removing_since = now()");
  await expect(test.database.transaction((transaction) => holdObjects(transaction, [first]))).rejects.toThrow(
    /was removed as too old/u,
  );
});

it("tells apart what is gone from what can't be asked for: only the first loses the work", async () => {
  const id = await save(randomBytes(300_000));
  s3.fail("GET", 503);
  await expect(read(id)).rejects.toMatchObject({ transient: true, message: expect.stringMatching(/503/u) as unknown });
  s3.repair();
  for (const other of [null, openStore({ OFFSTAGE_S3_BUCKET: "another" })]) {
    await expect(read(id, other)).rejects.toMatchObject({
      transient: false,
      message: expect.stringMatching(/in the bucket offstage-test of an object store that this worker/u) as unknown,
    });
  }
  await expect(read(id, openStore({ OFFSTAGE_S3_SECRET_ACCESS_KEY: "x" }))).rejects.toThrow(ObjectStoreError);
  const [key = ""] = s3.objects.keys();
  s3.objects.set(key, randomBytes(300_028));
  await expect(read(id)).rejects.toThrow(/changed outside Offstage/u);
  s3.objects.clear();
  await expect(read(id)).rejects.toThrow(/is gone/u);
});

it("ends in the middle if the worker stops, and leaves the rest for the next time", async () => {
  await save(randomBytes(300_000));
  await save(Buffer.from("small"));
  await pass("2 hours");
  s3.fail("DELETE", "no answer");
  const stopping = new AbortController();
  const sweeping = sweepObjects(test.database, objects, stopping.signal);
  await waitFor(() => s3.requests.some((request) => request.startsWith("DELETE")), "one is asked for");
  stopping.abort();
  expect(await sweeping).toBe(0);
  expect((await keys()).known).toHaveLength(1);
});

it("sweeps nothing that another bucket has", async () => {
  await save(randomBytes(300_000));
  await save(Buffer.from("small"));
  await pass("2 hours");
  expect(await sweep(openStore({ OFFSTAGE_S3_BUCKET: "another" }))).toBe(0);
  expect((await keys()).known).toHaveLength(1);
});
