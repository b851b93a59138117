import { expect, it } from "vitest";
import { createFairQueue, type FairQueue } from "./fair-queue.ts";

const limits = { perAsker: 3, perOrganization: 5 };
const drain = (turns: FairQueue<string>): string[] => {
  const taken: string[] = [];
  for (let item = turns.take(); item !== undefined; item = turns.take()) taken.push(item);
  return taken;
};

it("organizations take turns, and within each those who ask", () => {
  const turns = createFairQueue<string>(limits);
  for (const [organizationId, id, item] of [
    ["many", "a", "a1"],
    ["many", "a", "a2"],
    ["many", "b", "b1"],
    ["many", "a", "a3"],
    ["few", "c", "c1"],
  ] as const) {
    expect(turns.add({ organizationId, id }, item)).toBe(true);
  }
  expect(drain(turns)).toEqual(["a1", "c1", "b1", "a2", "a3"]);
});

it("so much of one asker and of one organization waits, and the next is refused", () => {
  const turns = createFairQueue<string>(limits);
  const add = (organizationId: string, id: string): boolean => turns.add({ organizationId, id }, id);
  expect([1, 2, 3, 4].map(() => add("one", "a"))).toEqual([true, true, true, false]);
  expect([1, 2, 3].map(() => add("one", "b"))).toEqual([true, true, false]);
  expect(add("two", "a")).toBe(true);
  turns.take();
  expect(add("one", "a")).toBe(true);
  expect(turns.takeAll()).toHaveLength(6);
  expect(turns.take()).toBeUndefined();
});
