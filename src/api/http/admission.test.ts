import { expect, onTestFinished, test, vi } from "vitest";
import type { Database } from "../../database/database.ts";
import { UnavailableError } from "../../domain/errors/errors.ts";
import { createAdmission } from "./admission.ts";

function admission(options: { depth: () => number; room?: () => boolean; now?: () => number; queueLimit?: number }) {
  const query = () => Promise.resolve({ rows: [{ count: options.depth() }] });
  return createAdmission({
    database: { pool: { query } } as unknown as Database,
    queueLimit: options.queueLimit ?? 3,
    hasRoom: () => Promise.resolve(options.room?.() ?? true),
    now: options.now ?? (() => 0),
  });
}

test("takes work up to the limit, and tells then when to come again", async () => {
  const admit = admission({ depth: () => 1 });
  await admit("one");
  await admit("one");
  await expect(admit("one")).rejects.toThrow(/already has 3 sessions and jobs waiting/u);
  await expect(admit("one")).rejects.toMatchObject({ retryAfterMs: 30_000 });
});

test("counts each organization by itself, and again after a second", async () => {
  let depth = 3;
  let now = 0;
  const admit = admission({ depth: () => depth, now: () => now });
  await expect(admit("one")).rejects.toThrow(UnavailableError);
  depth = 0;
  await admit("two");
  await expect(admit("one")).rejects.toThrow(UnavailableError);
  now = 1_000;
  await admit("one");
});

test("counts again after a second, also if the machine's clock is put back", async () => {
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  let count = 3;
  const query = () => Promise.resolve({ rows: [{ count }] });
  const admit = createAdmission({
    database: { pool: { query } } as unknown as Database,
    queueLimit: 3,
    hasRoom: () => Promise.resolve(true),
  });
  await expect(admit("one")).rejects.toThrow(UnavailableError);
  count = 0;
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(1_000);
  await admit("one");
});

test("takes nothing while the disk is full", async () => {
  let room = false;
  let now = 0;
  const admit = admission({ depth: () => 0, room: () => room, now: () => now });
  await expect(admit("one")).rejects.toThrow(/the server's disk is nearly full/u);
  room = true;
  now = 1_000;
  await admit("one");
});

test("counts once for all that come meanwhile, and again if the count failed", async () => {
  let counted = 0;
  let count: () => Promise<number> = () => Promise.resolve(0);
  const query = async () => {
    counted += 1;
    return { rows: [{ count: await count() }] };
  };
  let asked = 0;
  const admit = createAdmission({
    database: { pool: { query } } as unknown as Database,
    queueLimit: 3,
    hasRoom: () => Promise.resolve((asked += 1) > 0),
    now: () => 0,
  });
  const all = await Promise.allSettled(Array.from({ length: 5 }, () => admit("one")));
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected", "rejected"]);
  expect([counted, asked]).toEqual([1, 1]);
  count = () => Promise.reject(new Error("the database is away"));
  await expect(admit("two")).rejects.toThrow("the database is away");
  count = () => Promise.resolve(0);
  await admit("two");
});

test("lets work in by the count of just now while the next one is made, and refuses none by it", async () => {
  const counts: ((count: number) => void)[] = [];
  const query = () => new Promise((resolve) => counts.push((count) => resolve({ rows: [{ count }] })));
  let now = 0;
  const admit = createAdmission({
    database: { pool: { query } } as unknown as Database,
    queueLimit: 4,
    hasRoom: () => Promise.resolve(true),
    now: () => now,
  });
  const first = admit("one");
  await vi.waitUntil(() => counts.length === 1);
  counts[0]?.(1);
  await first;
  now = 1_000;
  await admit("one");
  await admit("one");
  const [beyond, other] = [admit("one"), admit("one")];
  await vi.waitUntil(() => counts.length === 2);
  counts[1]?.(0);
  await Promise.all([beyond, other]);
  await expect(admit("one")).rejects.toThrow(UnavailableError);
  // What was counted long ago says nothing of now.
  now = 3_000;
  const late = admit("one");
  await vi.waitUntil(() => counts.length === 3);
  counts[2]?.(4);
  await expect(late).rejects.toThrow(UnavailableError);
});
