import { expect, it } from "vitest";
import { createLook } from "./look.ts";

/** Looks that each last until they are ended. */
function heldLooks() {
  const begun: PromiseWithResolvers<void>[] = [];
  const failures: unknown[] = [];
  const stopping = new AbortController();
  const take = (): Promise<void> => {
    const held = Promise.withResolvers<void>();
    begun.push(held);
    return held.promise;
  };
  const looks = createLook(take, { stopping: stopping.signal, onFailure: (error) => failures.push(error) });
  return { ...looks, begun, failures, stopping };
}

it("looks once more for all calls during a look, and not beside it", async () => {
  const { look, settled, begun } = heldLooks();
  look();
  look();
  look();
  expect(begun).toHaveLength(1);
  begun[0]?.resolve();
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve();
  await settled();
  expect(begun).toHaveLength(2);
});

it("looks again after a look that failed", async () => {
  const { look, settled, begun, failures } = heldLooks();
  look();
  look();
  begun[0]?.reject(new Error("the database is away"));
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve();
  await settled();
  expect(failures).toEqual([new Error("the database is away")]);
});

it("begins no look once it is stopping, and settles with the one that is under way", async () => {
  const { look, settled, begun, stopping } = heldLooks();
  look();
  look();
  stopping.abort();
  begun[0]?.resolve();
  await settled();
  look();
  await settled();
  expect(begun).toHaveLength(1);
});
