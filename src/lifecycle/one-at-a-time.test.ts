import { expect, it } from "vitest";
import { createOneAtATime } from "./one-at-a-time.ts";

/** Work whose runs each last until they are ended. */
function heldWork() {
  const begun: PromiseWithResolvers<string>[] = [];
  const work = createOneAtATime(() => {
    const held = Promise.withResolvers<string>();
    begun.push(held);
    return held.promise;
  });
  return { ...work, begun };
}

it("runs once more for all calls during a run, and not beside it", async () => {
  const { run, begun } = heldWork();
  const first = run();
  const later = [run(), run()];
  expect(begun).toHaveLength(1);
  begun[0]?.resolve("first");
  expect(await first).toBe("first");
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve("second");
  expect(await Promise.all(later)).toEqual(["second", "second"]);
  expect(begun).toHaveLength(2);
});

it("hands the error of a run to those who waited for it, and runs again for the others", async () => {
  const { run, begun } = heldWork();
  const failing = run();
  const later = run();
  begun[0]?.reject(new Error("the database is away"));
  await expect(failing).rejects.toThrow("the database is away");
  await expect.poll(() => begun.length).toBe(2);
  begun[1]?.resolve("it is back");
  expect(await later).toBe("it is back");
});

it("rejects if the work throws at once, and can be run again", async () => {
  let isBroken = true;
  const { run } = createOneAtATime(() => {
    if (isBroken) throw new Error("not yet");
    return Promise.resolve("done");
  });
  await expect(run()).rejects.toThrow("not yet");
  isBroken = false;
  expect(await run()).toBe("done");
});

it("begins no run once it is stopped, and settles with the one that is under way", async () => {
  const { run, stop, begun } = heldWork();
  const first = run();
  const waiting = run();
  let isStopped = false;
  const stopped = stop().then(() => (isStopped = true));
  // Far more turns of the event loop than a stop that does not wait would take.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(isStopped).toBe(false);
  begun[0]?.resolve("first");
  await stopped;
  expect(await Promise.all([first, waiting, run()])).toEqual(["first", null, null]);
  await stop();
  expect(begun).toHaveLength(1);
});

it("can be stopped if it never ran", async () => {
  const { run, stop } = heldWork();
  await stop();
  expect(await run()).toBeNull();
});
