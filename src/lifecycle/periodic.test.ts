import { afterEach, expect, it } from "vitest";
import { createPeriodic, withListener, type Periodic, type PeriodicOptions } from "./periodic.ts";

const made: Periodic[] = [];

/** A periodic task whose passes each last until they are ended. */
function heldPasses(options: Partial<PeriodicOptions> = {}) {
  const begun: (PromiseWithResolvers<void> & { readonly stopping: AbortSignal })[] = [];
  const failures: unknown[] = [];
  const task = createPeriodic({
    pass: (stopping) => {
      const held = { ...Promise.withResolvers<void>(), stopping };
      begun.push(held);
      return held.promise;
    },
    everyMs: 1_000_000,
    onFailure: (error) => failures.push(error),
    ...options,
  });
  made.push(task);
  return { task, begun, failures };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
}

afterEach(async () => {
  await Promise.all(made.splice(0).map((task) => task.stop()));
});

it("does a pass at its start, and others from time to time", async () => {
  let passes = 0;
  const { task } = heldPasses({ everyMs: 1, pass: () => Promise.resolve(void (passes += 1)) });
  await task.start();
  expect(passes).toBe(1);
  await expect.poll(() => passes).toBeGreaterThan(3);
});

it("delays its first pass on request", async () => {
  const { task, begun } = heldPasses({ firstAfterMs: 5 });
  await task.start();
  expect(begun).toHaveLength(0);
  await expect.poll(() => begun.length).toBe(1);
  begun[0]?.resolve();
});

it("begins no pass beside another, however long that takes", async () => {
  let inRound = 0;
  let most = 0;
  let passes = 0;
  const { task } = heldPasses({
    everyMs: 1,
    pass: async () => {
      most = Math.max(most, (inRound += 1));
      await new Promise((resolve) => setTimeout(resolve, 10));
      inRound -= 1;
      passes += 1;
    },
  });
  await task.start();
  await expect.poll(() => passes).toBeGreaterThan(3);
  expect(most).toBe(1);
});

it("does one more pass for all calls during a pass", async () => {
  const { task, begun } = heldPasses();
  await task.start();
  for (let call = 0; call < 3; call += 1) task.now();
  expect(begun).toHaveLength(1);
  begun[0]?.resolve();
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve();
  await turns();
  expect(begun).toHaveLength(2);
});

it("hands on the error of a pass, thrown at once too, and goes on", async () => {
  let passes = 0;
  const { task, failures } = heldPasses({
    everyMs: 1,
    pass: () => {
      passes += 1;
      if (passes === 1) throw new Error("at once");
      return passes === 2 ? Promise.reject(new Error("later")) : Promise.resolve();
    },
  });
  await task.start();
  await expect.poll(() => passes).toBeGreaterThan(3);
  expect(failures).toEqual([new Error("at once"), new Error("later")]);
});

it("tells the pass under way that it stops, waits for it, and begins no other", async () => {
  const { task, begun } = heldPasses({ everyMs: 1 });
  await task.start();
  task.now();
  let isStopped = false;
  const stopped = task.stop().then(() => (isStopped = true));
  expect(task.stop()).toBe(task.stop());
  await turns();
  expect([begun[0]?.stopping.aborted, isStopped]).toEqual([true, false]);
  begun[0]?.resolve();
  await stopped;
  task.now();
  await turns();
  expect(begun).toHaveLength(1);
});

it("reports no failure of a pass that ends because it is stopped", async () => {
  const { task, failures } = heldPasses({
    pass: (stopping) =>
      new Promise((_, reject) => stopping.addEventListener("abort", () => reject(stopping.reason as Error))),
  });
  await task.start();
  await task.stop();
  expect(failures).toEqual([]);
});

it("does nothing before its start, nor if it was stopped before", async () => {
  const { task, begun } = heldPasses();
  task.now();
  await task.stop();
  await task.start();
  task.now();
  await turns();
  expect(begun).toHaveLength(0);
});

it("passes on each notification, from its start until it is stopped", async () => {
  let passes = 0;
  const { task } = heldPasses({ pass: () => Promise.resolve(void (passes += 1)) });
  let tell: (() => void) | null = null;
  const listening = withListener(task, (now) => {
    tell = now;
    return Promise.resolve({ close: () => Promise.resolve(void (tell = null)) });
  });
  expect(tell).toBeNull();
  await listening.start();
  await turns();
  expect(passes).toBe(1);
  (tell as (() => void) | null)?.();
  await turns();
  expect(passes).toBe(2);
  await listening.stop();
  expect(tell).toBeNull();
  task.now();
  await turns();
  expect(passes).toBe(2);
});

it("does not pass without notifications, and stops all the same", async () => {
  const { task, begun } = heldPasses();
  const listening = withListener(task, () => Promise.reject(new Error("the database is away")));
  await expect(listening.start()).rejects.toThrow("the database is away");
  await listening.stop();
  expect(begun).toEqual([]);
});
