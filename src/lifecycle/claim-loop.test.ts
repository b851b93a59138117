import { afterEach, expect, it } from "vitest";
import { createClaimLoop, type ClaimLoopOptions } from "./claim-loop.ts";
import type { Periodic } from "./periodic.ts";

const made: Periodic[] = [];
/** Have what is still worked on end after a test, also one that failed. */
const releases: (() => void)[] = [];

/** A loop over names that are due, each of which is worked on until it is ended. */
function heldLoop(due: string[], options: Partial<ClaimLoopOptions<string>> = {}) {
  const begun = new Map<string, PromiseWithResolvers<void> & { readonly hurry: AbortSignal }>();
  const failures: unknown[] = [];
  const claims: (readonly string[])[] = [];
  let isOver = false;
  const loop = createClaimLoop<string>({
    atOnce: 2,
    everyMs: 1_000_000,
    claim: (underWay) => {
      claims.push(underWay);
      return Promise.resolve(due.splice(0, 1));
    },
    work: (name, hurry) => {
      const held = { ...Promise.withResolvers<void>(), hurry };
      begun.set(name, held);
      if (isOver) held.resolve();
      return held.promise;
    },
    onClaimFailure: (error) => failures.push(error),
    onWorkFailure: (error, name) => failures.push([name, error]),
    ...options,
  });
  made.push(loop);
  releases.push(() => {
    isOver = true;
    for (const { resolve } of begun.values()) resolve();
  });
  const names = () => [...begun.keys()];
  const end = (name: string) => begun.get(name)?.resolve();
  return { loop, begun, names, end, failures, claims };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
}

afterEach(async () => {
  const stopped = made.splice(0).map((loop) => loop.stop());
  for (const release of releases.splice(0)) release();
  await Promise.all(stopped);
});

it("works on no more at once than it may, and what ends makes room for the next", async () => {
  const { loop, names, end } = heldLoop(["a", "b", "c"]);
  await loop.start();
  await turns();
  expect(names()).toEqual(["a", "b"]);
  // The first is slow: it holds up only its own place.
  end("b");
  await expect.poll(names).toEqual(["a", "b", "c"]);
});

it("passes the items under way to the claim", async () => {
  const { loop, claims, end } = heldLoop(["a", "b", "c"]);
  await loop.start();
  await turns();
  end("a");
  await expect.poll(() => claims).toEqual([[], ["a"], ["b"]]);
});

it("looks again on request, and from time to time", async () => {
  const due: string[] = [];
  const { loop, names } = heldLoop(due);
  await loop.start();
  await turns();
  due.push("a");
  await turns();
  expect(names()).toEqual([]);
  loop.now();
  await expect.poll(names).toEqual(["a"]);

  const later: string[] = [];
  const polling = heldLoop(later, { everyMs: 1 });
  await polling.loop.start();
  later.push("b");
  await expect.poll(polling.names).toEqual(["b"]);
});

it("hands on the error of failed work, thrown at once too, and goes on with the next", async () => {
  const failures: unknown[] = [];
  const { loop } = heldLoop(["a", "b", "c"], {
    atOnce: 1,
    work: (name) => {
      if (name === "a") throw new Error("at once");
      return name === "b" ? Promise.reject(new Error("later")) : Promise.resolve(void failures.push("c was done"));
    },
    onWorkFailure: (error, name) => failures.push([name, error]),
  });
  await loop.start();
  await expect.poll(() => failures).toEqual([["a", new Error("at once")], ["b", new Error("later")], "c was done"]);
});

it("hands on the error of a failed claim, and claims again", async () => {
  let claims = 0;
  const { loop, failures, names } = heldLoop([], {
    everyMs: 1,
    claim: () => {
      claims += 1;
      if (claims === 1) return Promise.reject(new Error("the database is away"));
      return Promise.resolve(claims === 2 ? ["a"] : []);
    },
  });
  await loop.start();
  await expect.poll(names).toEqual(["a"]);
  expect(failures).toEqual([new Error("the database is away")]);
});

it("claims nothing more once it stops, and waits for what is worked on", async () => {
  const { loop, begun, names, end } = heldLoop(["a", "b", "c"]);
  await loop.start();
  await turns();
  let isStopped = false;
  const stopped = loop.stop().then(() => (isStopped = true));
  await turns();
  end("a");
  await turns();
  expect([names(), isStopped, begun.get("b")?.hurry.aborted]).toEqual([["a", "b"], false, false]);
  end("b");
  await stopped;
  loop.now();
  await turns();
  expect(names()).toEqual(["a", "b"]);
});

it("works on what a claim brings that was under way when it stopped", async () => {
  const claim = Promise.withResolvers<string[]>();
  let claims = 0;
  const { loop, names, end } = heldLoop([], {
    claim: () => ((claims += 1) === 1 ? claim.promise : Promise.resolve([])),
  });
  await loop.start();
  const stopped = loop.stop();
  // Far more turns of the event loop than it takes to stop the passes.
  await turns();
  claim.resolve(["a"]);
  await expect.poll(names).toEqual(["a"]);
  end("a");
  await stopped;
});

it.each([
  { graceMs: 0, when: "at once" },
  { graceMs: 1, when: "after its time" },
])("tells work to hurry $when if it stops", async ({ graceMs }) => {
  const { loop, begun, end } = heldLoop(["a"], { graceMs });
  await loop.start();
  await expect.poll(() => begun.get("a")?.hurry.aborted).toBe(false);
  const stopped = loop.stop();
  await expect.poll(() => begun.get("a")?.hurry.aborted).toBe(true);
  end("a");
  await stopped;
});

it("leaves work its time after a stop", async () => {
  const { loop, begun, end } = heldLoop(["a"], { graceMs: 1_000_000 });
  await loop.start();
  await turns();
  const stopped = loop.stop();
  await turns();
  end("a");
  await stopped;
  expect(begun.get("a")?.hurry.aborted).toBe(false);
});

it("does nothing before its start, nor if it was stopped before", async () => {
  const { loop, claims } = heldLoop(["a"]);
  loop.now();
  await loop.stop();
  await loop.start();
  loop.now();
  await turns();
  expect(claims).toEqual([]);
});
