import { expect, test } from "vitest";
import type { ChaosFleet } from "./fleet.ts";
import { recoveries, slowRecoveries, type Recovery } from "./recoveries.ts";

// The measure of the recovery has a control of its own: what it would not tell, no run would break at.

const leaseMs = 3_000;

/** A recovery as `recoveries` explains it: killed at 0, in the queue after its lease, claimed later. */
async function recovery(given: {
  readonly queuedAt: number;
  readonly retryAt?: number;
  readonly claimedAt: number;
  /** Of each 200 ms: the free places of each worker; null: it is hurt. */
  readonly places: (at: number) => readonly (number | null)[] | null;
}): Promise<Recovery> {
  const move = { sessionId: "lost", lost: false, retryAt: null };
  const rows = [
    { ...move, at: given.queuedAt, to: "queued", lost: true, retryAt: given.retryAt ?? null },
    { ...move, at: given.claimedAt, to: "running" },
  ];
  const fleet = { store: { query: () => Promise.resolve({ rows }) } } as unknown as ChaosFleet;
  const samples = Array.from({ length: 500 }, (_, index) => ({ at: index * 200, places: given.places(index * 200) }));
  const [found] = await recoveries(fleet, [{ at: 0, sessions: ["lost"] }], samples);
  if (found === undefined) throw new Error("it found none");
  return found;
}

test("the time until a session goes on is told apart: its lease, its pause, nobody, hurt workers, all places taken, a free place", async () => {
  const states: readonly [until: number, places: readonly (number | null)[] | null][] = [
    [3_000, [1, 1]],
    [6_000, null],
    [10_000, [null, 0]],
    [15_000, [0, 0]],
    [Infinity, [0, 1]],
  ];
  const found = await recovery({
    queuedAt: 3_000,
    retryAt: 5_000,
    claimedAt: 21_000,
    places: (at) => states.find(([until]) => at < until)?.[1] ?? null,
  });
  expect(found.parts).toEqual({ lease: 3_000, pause: 2_000, nobody: 1_000, shrunk: 4_000, full: 5_000, free: 6_000 });
  expect([found.tookMs, found.ownMs]).toEqual([21_000, 16_000]);
});

test("a run is broken if more than one recovery in a hundred took longer than seven leases by our own doing", async () => {
  const free = () => [1];
  const fast = await recovery({ queuedAt: 3_000, claimedAt: 7 * leaseMs, places: free });
  const slow = await recovery({ queuedAt: 3_000, claimedAt: 7 * leaseMs + 1_000, places: free });
  const paused = await recovery({ queuedAt: 3_000, retryAt: 30_000, claimedAt: 30_000, places: free });
  const ofMishaps = await recovery({ queuedAt: 3_000, claimedAt: 60_000, places: (at) => (at < 3_000 ? [1] : null) });
  expect(slowRecoveries([fast, ofMishaps], leaseMs)).toEqual([]);
  expect(slowRecoveries([fast, slow], leaseMs)).toEqual([expect.stringContaining("a slow recovery: 22.0 s of lost")]);
  expect(slowRecoveries([paused], leaseMs)).toHaveLength(1);
  const many = Array.from({ length: 99 }, () => fast);
  expect(slowRecoveries([...many, slow], leaseMs)).toEqual([]);
  expect(slowRecoveries([...many, slow, slow], leaseMs)).toHaveLength(2);
});
