import { expect, test } from "vitest";
import { createBatcher } from "./batcher.ts";

/** Holds every batch until it is let go. */
function held(options: {
  atOnce: number;
  most: number;
  fails?: (inputs: readonly number[]) => boolean;
  weight?: { of: (input: number) => number; most: number; mostWaiting: number };
}) {
  const batches: number[][] = [];
  const gates: (() => void)[] = [];
  const put = createBatcher<number, string>(
    async (inputs) => {
      batches.push([...inputs]);
      await new Promise<void>((resolve) => gates.push(resolve));
      if (options.fails?.(inputs) === true) throw new Error(`no: ${inputs.join(",")}`);
      return inputs.map((input) => `did ${input}`);
    },
    { ...options, isOnesOwn: (error) => !(error as Error).message.includes("666") },
  );
  async function letGo(): Promise<void> {
    gates.shift()?.();
    // Its consequences begin within this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { batches, put, letGo };
}

test("what comes while a batch is under way goes together, and each gets its own result", async () => {
  const { batches, put, letGo } = held({ atOnce: 1, most: 10 });
  const first = put(1);
  await letGo();
  expect(batches).toEqual([[1]]);
  const rest = [put(2), put(3), put(4)];
  await letGo();
  expect(await first).toBe("did 1");
  expect(batches).toEqual([[1], [2, 3, 4]]);
  await letGo();
  expect(await Promise.all(rest)).toEqual(["did 2", "did 3", "did 4"]);
});

test("a batch takes no more than it may, and no more of them run at once", async () => {
  const { batches, put, letGo } = held({ atOnce: 2, most: 2 });
  const all = Array.from({ length: 7 }, (_, index) => put(index));
  await letGo();
  expect(batches).toEqual([
    [0, 1],
    [2, 3],
  ]);
  for (let count = 0; count < 4; count += 1) await letGo();
  expect(batches).toHaveLength(4);
  expect(await Promise.all(all)).toEqual(all.map((_, index) => `did ${index}`));
});

test("one caller's invalid request does not fail the others", async () => {
  const { put, letGo } = held({ atOnce: 1, most: 10, fails: (inputs) => inputs.includes(2) });
  const all = Promise.allSettled([put(1), put(2), put(3)]);
  await letGo();
  for (let count = 0; count < 5; count += 1) await letGo();
  expect((await all).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("an error that is no one's own fails all at once, and the next go on", async () => {
  const { batches, put, letGo } = held({ atOnce: 1, most: 10, fails: (inputs) => inputs.includes(666) });
  const all = Promise.allSettled([put(1), put(666)]);
  await letGo();
  await letGo();
  expect((await all).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(batches).toHaveLength(1);
  const next = put(3);
  await letGo();
  await letGo();
  expect(await next).toBe("did 3");
});

test("one of many that is wrong is found in halves", async () => {
  const { batches, put, letGo } = held({ atOnce: 1, most: 100, fails: (inputs) => inputs.includes(40) });
  const all = Promise.allSettled(Array.from({ length: 64 }, (_, index) => put(index)));
  for (let count = 0; count < 20; count += 1) await letGo();
  const settled = await all;
  expect(settled.flatMap(({ status }, index) => (status === "rejected" ? [index] : []))).toEqual([40]);
  expect(batches).toHaveLength(13);
});

test("a batch weighs no more than it may, and what would be too much to keep is refused", async () => {
  const weight = { of: (input: number) => input, most: 10, mostWaiting: 30 };
  const { batches, put, letGo } = held({ atOnce: 1, most: 100, weight });
  const all = [put(20), put(4), put(6)];
  await expect(put(1)).rejects.toMatchObject({ code: "unavailable", retryAfterMs: 1_000 });
  await letGo();
  all.push(put(1));
  for (let count = 0; count < 4; count += 1) await letGo();
  expect(batches).toEqual([[20], [4, 6], [1]]);
  expect(await Promise.all(all)).toHaveLength(4);
});
