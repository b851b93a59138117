import { beforeEach, expect, test } from "vitest";
import { SessionError } from "../../../domain/errors/errors.ts";
import { createFetchTurns, type FetchTurns, type WantedFetch } from "./fetch-turns.ts";

/** A mirror's contents, and its fetches, which end when the test says so. */
let there: Set<string>;
let begun: { name: string; report: (line: string) => void; end: () => void; fail: (error: Error) => void }[];
let turns: FetchTurns;

beforeEach(() => {
  there = new Set();
  begun = [];
  turns = createFetchTurns();
});

/** A session's fetch. @returns its progress, how it ended, and what ends its session */
function session(name: string, more: Partial<WantedFetch> = {}) {
  const progress: string[] = [];
  const stop = new AbortController();
  const ended = turns
    .take(
      {
        mirror: "/mirror.git",
        name,
        isFirst: false,
        mayRead: () => Promise.resolve(),
        isThere: () => Promise.resolve(there.has(name)),
        fetch(report) {
          const { promise, resolve, reject } = Promise.withResolvers<void>();
          const end = (): void => {
            there.add(name);
            resolve();
          };
          stop.signal.addEventListener("abort", () => reject(stop.signal.reason as Error));
          begun.push({ name, report, end, fail: reject });
          return promise;
        },
        ...more,
      },
      (line) => progress.push(line),
      stop.signal,
    )
    .then(
      () => "fetched",
      (error: Error) => error.message,
    );
  return { progress, ended, stop: () => stop.abort(new Error("the session was stopped")) };
}

/** Lets all go on that can. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const refusal = (code: "repository_access_denied" | "repository_unreachable"): SessionError =>
  new SessionError({ code, reason: code, retryable: true, remedy: "" });

test("what one session fetches the others wait for, and see its progress", async () => {
  const [one, other] = [session("main"), session("main")];
  await settle();
  begun[0]?.report("half of it");
  begun[0]?.end();
  expect(await Promise.all([one.ended, other.ended])).toEqual(["fetched", "fetched"]);
  expect([one.progress, other.progress, begun.length]).toEqual([["half of it"], ["half of it"], 1]);
});

test("what one can't fetch the others can't either, unless it was its credentials", async () => {
  const [one, other] = [session("main"), session("main")];
  await settle();
  begun[0]?.fail(refusal("repository_unreachable"));
  expect(await Promise.all([one.ended, other.ended])).toEqual(["repository_unreachable", "repository_unreachable"]);
  const [refused, allowed] = [session("main"), session("main")];
  await settle();
  begun[1]?.fail(refusal("repository_access_denied"));
  await settle();
  begun[2]?.end();
  expect(await Promise.all([refused.ended, allowed.ended])).toEqual(["repository_access_denied", "fetched"]);
});

test("a session that is stopped stops no other's fetch, and another goes on in its place", async () => {
  const [one, other, third] = [session("main"), session("main"), session("main")];
  await settle();
  third.stop();
  expect(await third.ended).toBe("the session was stopped");
  one.stop();
  expect(await one.ended).toBe("the session was stopped");
  await settle();
  expect(begun).toHaveLength(2);
  begun[1]?.end();
  expect(await other.ended).toBe("fetched");
});

test("another branch is fetched beside, unless the mirror is empty: then most of it comes with the first", async () => {
  const beside = [session("main"), session("work")];
  await settle();
  expect(begun.map(({ name }) => name)).toEqual(["main", "work"]);
  for (const { end } of begun) end();
  await Promise.all(beside.map(({ ended }) => ended));
  [there, begun] = [new Set(), []];
  const first = session("main", { isFirst: true });
  const second = session("work", { isFirst: true });
  await settle();
  expect(begun.map(({ name }) => name)).toEqual(["main"]);
  begun[0]?.end();
  await first.ended;
  await settle();
  expect(begun.map(({ name }) => name)).toEqual(["main", "work"]);
  begun[1]?.end();
  expect(await second.ended).toBe("fetched");
});

test("who may not read it does not wait for another's fetch", async () => {
  const one = session("main");
  const other = session("main", { mayRead: () => Promise.reject(refusal("repository_access_denied")) });
  expect(await other.ended).toBe("repository_access_denied");
  begun[0]?.end();
  expect([await one.ended, other.progress]).toEqual(["fetched", []]);
});
