import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createWorkLimiter } from "./work-limiter.ts";

/** Work that ends on request, and notes its beginning. */
function createWork(begun: string[]) {
  const ends = new Map<string, () => void>();
  return {
    do: (name: string) => () =>
      new Promise<string>((resolve) => {
        begun.push(name);
        ends.set(name, () => resolve(name));
      }),
    end: (name: string) => ends.get(name)?.(),
  };
}

describe("turns", () => {
  it("let only so much work begin at once, and the rest in the order of its coming", async () => {
    const turns = createWorkLimiter("do it", { atOnce: 2, waiting: 10, waitMs: 60_000 });
    const begun: string[] = [];
    const work = createWork(begun);
    const all = ["a", "b", "c", "d", "e"].map((name) => turns.run(work.do(name)));
    await setImmediate();
    expect(begun).toEqual(["a", "b"]);
    work.end("b");
    await setImmediate();
    expect(begun).toEqual(["a", "b", "c"]);
    for (const name of ["a", "c"]) work.end(name);
    await setImmediate();
    expect(begun).toEqual(["a", "b", "c", "d", "e"]);
    for (const name of ["d", "e"]) work.end(name);
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("are given on by work that fails", async () => {
    const turns = createWorkLimiter("do it", { atOnce: 1, waiting: 1, waitMs: 60_000 });
    const failing = turns.run(() => Promise.reject(new Error("failed")));
    const next = turns.run(() => Promise.resolve("done"));
    await expect(failing).rejects.toThrow("failed");
    expect(await next).toBe("done");
  });

  it("refuse what comes while too much waits, and what waits too long, without beginning it", async () => {
    const turns = createWorkLimiter("do it", { atOnce: 1, waiting: 1, waitMs: 10 });
    const begun: string[] = [];
    const work = createWork(begun);
    const first = turns.run(work.do("first"));
    const late = turns.run(work.do("late"));
    await expect(turns.run(work.do("refused"))).rejects.toThrow(
      "1 others wait already for the container engine to do it",
    );
    await expect(late).rejects.toThrow("too busy to do it within 10 ms");
    work.end("first");
    await first;
    expect(begun).toEqual(["first"]);
  });

  it("end the wait of who stops, and leave the turns of others as they are", async () => {
    const turns = createWorkLimiter("do it", { atOnce: 1, waiting: 2, waitMs: 60_000 });
    const begun: string[] = [];
    const work = createWork(begun);
    const first = turns.run(work.do("first"));
    const stop = new AbortController();
    const stopped = turns.run(work.do("stopped"), stop.signal);
    const last = turns.run(work.do("last"));
    stop.abort(new Error("stopped by the test"));
    await expect(stopped).rejects.toThrow("stopped by the test");
    await expect(turns.run(work.do("too late"), stop.signal)).rejects.toThrow("stopped by the test");
    work.end("first");
    await first;
    await setImmediate();
    work.end("last");
    expect(await last).toBe("last");
    expect(begun).toEqual(["first", "last"]);
  });
});
