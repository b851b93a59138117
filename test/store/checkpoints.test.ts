import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import {
  openPiece,
  pruneCheckpoints,
  readCheckpoint,
  saveCheckpoint,
  type Checkpoint,
} from "../../src/store/checkpoints/checkpoints.ts";
import { finishSession, type ClaimedSession } from "../../src/store/queue/claims.ts";
import { failSession } from "../../src/store/queue/retry.ts";
import { LeaseLostError, recoverSessions } from "../../src/store/queue/lease.ts";
import { fileKeyring } from "../../src/store/secrets/keyring.ts";
import { rotateMasterKey } from "../../src/store/secrets/rotation.ts";
import { createVault, type Vault } from "../../src/store/secrets/vault.ts";
import { cancelSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, claim, expireLease, requireClaim } from "./fixtures.ts";

let test: TestDatabase;
let folder: string;
let vault: Vault;
let claimed: ClaimedSession;

beforeAll(async () => {
  test = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "offstage-checkpoints-"));
  vault = createVault(fileKeyring(join(folder, "master.key")));
});

beforeEach(async () => {
  await addSession(test.database, await addOrganization(test.database));
  claimed = await requireClaim(test.database);
});

afterAll(async () => {
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

const storeOf = (by: Vault) => ({ database: test.database, vault: by, objects: null });

/** Saves one with a piece of `content`, and gives the piece's id. */
async function save(content: Buffer, held = claimed, by = vault, state = content.toString()): Promise<string> {
  const id = randomUUID();
  const file = join(folder, id);
  await writeFile(file, content);
  const checkpoint: Checkpoint = {
    originalPaths: { workspace: "/w", home: "/h" },
    repositories: [],
    files: id,
    contentHash: state.slice(0, 100).replaceAll("\0", ""),
    harness: null,
  };
  const fresh = new Map([[id, file]]);
  await saveCheckpoint(storeOf(by), held, { checkpoint, fresh }, new AbortController().signal);
  return id;
}

const read = (id: string, by = vault): Promise<Buffer> =>
  buffer(openPiece(storeOf(by), claimed.sessionId, id, new AbortController().signal));
const stored = async () =>
  (await test.database.pool.query("select * from checkpoint_piece where session_id = $1", [claimed.sessionId])).rows;

it("gives back what was kept, whatever its size, and shows nothing of it in the store", async () => {
  const content = Buffer.concat([Buffer.from("the secret word"), randomBytes(2_500_000)]);
  const id = await save(content);
  expect((await read(id)).equals(content)).toBe(true);
  const rows = await stored();
  expect(rows).toHaveLength(3);
  expect(rows.some(({ sealed }: { sealed: Buffer }) => sealed.includes("the secret word"))).toBe(false);
  expect(await readCheckpoint(test.database, claimed.sessionId)).toMatchObject({ files: id });
});

it("keeps no piece that the last checkpoint does not name", async () => {
  await save(Buffer.from("first"));
  const second = await save(Buffer.from("second"));
  expect((await stored()).map(({ id }: { id: string }) => id)).toEqual([second]);
});

it("refuses a worker that lost the session, and leaves what its successor kept", async () => {
  const before = await save(Buffer.from("before"));
  await expireLease(test.database, claimed.sessionId);
  await recoverSessions(test.database, {});
  const successor = await requireClaim(test.database);
  await expect(save(Buffer.from("late"))).rejects.toThrow(LeaseLostError);
  expect((await read(before)).toString()).toBe("before");
  const after = await save(Buffer.from("after"), successor);
  expect((await read(after)).toString()).toBe("after");
});

it("can be opened after the master key was rotated, and without the right key it can't", async () => {
  const id = await save(Buffer.from("kept"));
  await rotateMasterKey(test.database, vault);
  expect((await read(id)).toString()).toBe("kept");
  const later = await save(Buffer.from("kept later"));
  expect((await read(later)).toString()).toBe("kept later");
  const stranger = createVault(fileKeyring(join(folder, "stranger.key")));
  await expect(read(later, stranger)).rejects.toThrow(/the master key [0-9a-f]{16}, which sealed/u);
});

it("tells if a piece was changed behind its back", async () => {
  const id = await save(Buffer.from("kept"));
  await test.database.pool.query(
    "update checkpoint_piece set sealed = set_byte(sealed, 30, 255 - get_byte(sealed, 30)) where id = $1",
    [id],
  );
  await expect(read(id)).rejects.toThrow(/changed outside Offstage/u);
});

it("counts work that was kept as progress, so that a session of many crashes is not given up", async () => {
  for (let crash = 0; crash < 12; crash += 1) {
    await save(Buffer.from(`after ${crash} crashes`));
    await expireLease(test.database, claimed.sessionId);
    await recoverSessions(test.database, {});
    claimed = await requireClaim(test.database);
  }
  expect(claimed.attempt).toBe(13);
});

it.each(["agent_crashed", "resources_exhausted", "internal"] as const)(
  "counts failures of the session's own doing anew once new work was kept: %s",
  async (code) => {
    const failure = { code, reason: "It broke.", retryable: true, passing: true, remedy: "Wait." };
    const { sessionId } = claimed;
    const fail = async (work: string): Promise<string> => {
      await save(Buffer.from(work), claimed);
      const reached = await failSession(test.database, claimed, failure, { forMs: 24 * 3_600_000 });
      await test.database.pool.query("update session set retry_at = null where id = $1", [sessionId]);
      if (reached === "queued") claimed = await requireClaim(test.database);
      return reached;
    };
    for (let times = 1; times <= 6; times += 1) expect(await fail(`work ${times}`)).toBe("queued");
    const since = async (): Promise<unknown> =>
      (
        await test.database.pool.query(
          "select retry -> 'since' as since, retry -> 'counts' as counts from session where id = $1",
          [sessionId],
        )
      ).rows[0];
    expect(await since()).toMatchObject({ counts: { [code]: 1 } });
    // The same work again is no progress.
    for (let times = 1; times <= 2; times += 1) expect(await fail("work 6")).toBe("queued");
    expect(await fail("work 6")).toBe("failed");
  },
);

it("counts no memory of the harness as progress: a session that kills its worker each time is given up", async () => {
  const { sessionId } = claimed;
  for (let crash = 1; crash <= 20; crash += 1) {
    await save(Buffer.from(`memory of the life ${crash}`), claimed, vault, "the same files");
    await expireLease(test.database, sessionId);
    await recoverSessions(test.database, {});
    await test.database.pool.query("update session set retry_at = null");
    const next = await claim(test.database);
    if (next === null) break;
    claimed = next;
  }
  expect(claimed.attempt).toBe(10);
  const { rows } = await test.database.pool.query(
    "select status, failure ->> 'code' as code from session where id = $1",
    [sessionId],
  );
  expect(rows).toEqual([{ status: "failed", code: "too_many_attempts" }]);
});

it("lets a session be cancelled while its pieces are on their way", async () => {
  await test.database.transaction(async (transaction) => {
    await transaction.query(
      "insert into checkpoint_piece (session_id, id, position, sealed) values ($1, gen_random_uuid(), 0, 'x')",
      [claimed.sessionId],
    );
    expect(await cancelSession(test.database, claimed.organizationId, claimed.sessionId)).toMatchObject({
      status: "running",
    });
  });
});

it("goes some days after the session is over, and not before", async () => {
  // Those of other tests.
  await pruneCheckpoints(test.database, 0);
  await save(Buffer.from("kept"));
  expect(await pruneCheckpoints(test.database, 0)).toBe(0);
  await finishSession(test.database, claimed, { status: "cancelled", summary: null, failure: null });
  expect(await pruneCheckpoints(test.database, 1)).toBe(0);
  expect(await pruneCheckpoints(test.database, 0)).toBe(1);
  expect(await stored()).toEqual([]);
  expect(await readCheckpoint(test.database, claimed.sessionId)).toBeNull();
});
