import { expect, test } from "vitest";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createEventQueue } from "./event-queue.ts";

/** A store that takes the next event on request. */
function slowStore() {
  const stored: NewEvent[] = [];
  let go = (): void => undefined;
  const emit = async (event: NewEvent): Promise<void> => {
    await new Promise<void>((resolve) => (go = resolve));
    stored.push(event);
  };
  return { stored, emit, next: () => go() };
}

const message = (part: string, text: string): NewEvent => ({ type: "agent.message", data: { part, text } });
const tool = (toolCallId: string, title: string): NewEvent => ({
  type: "agent.tool",
  data: { toolCallId, title, kind: "other", status: "pending", locations: [], content: [] },
});

test("what waits for a slow store is joined, in order, and nothing of it is lost", async () => {
  const store = slowStore();
  const queue = createEventQueue(store.emit);
  const given = [
    message("1", "being stored, "),
    message("1", "a"),
    message("1", "b"),
    message("2", "c"),
    tool("t", "old"),
    tool("t", "new"),
    tool("u", "other"),
    tool("t", "newest"),
  ];
  const stored = given.map((event) => queue.push(event));
  let isSettled = false;
  const settled = queue.settled().then(() => (isSettled = true));
  while (!isSettled) {
    store.next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all([...stored, settled]);
  expect(store.stored).toEqual([
    message("1", "being stored, "),
    message("1", "ab"),
    message("2", "c"),
    tool("t", "new"),
    tool("u", "other"),
    tool("t", "newest"),
  ]);
});

test("no text is joined to more than one event holds", async () => {
  const store = slowStore();
  const queue = createEventQueue(store.emit);
  for (let count = 0; count < 10; count += 1) void queue.push(message("1", "x".repeat(9_000)));
  let isSettled = false;
  void queue.settled().then(() => (isSettled = true));
  while (!isSettled) {
    store.next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const lengths = store.stored.map((event) => (event.type === "agent.message" ? event.data.text.length : 0));
  expect(Math.max(...lengths)).toBeLessThanOrEqual(20_000);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(90_000);
});

test("after an event that could not be stored none is, and each says why", async () => {
  const lost = new Error("the lease was lost");
  let asked = 0;
  const queue = createEventQueue(() => {
    asked += 1;
    return Promise.reject(lost);
  });
  const stored = [message("1", "a"), tool("t", "b"), message("2", "c")].map((event) => queue.push(event));
  for (const one of stored) await expect(one).rejects.toBe(lost);
  await expect(queue.settled()).rejects.toBe(lost);
  await queue.hasRoom(0);
  expect(asked).toBe(1);
});

test("a flood of events is stored slowly, and all of it", async () => {
  let stored = 0;
  const queue = createEventQueue(() => Promise.resolve(void (stored += 1)));
  const started = performance.now();
  for (let count = 0; count < 120; count += 1) void queue.push(tool(String(count), "x"));
  await queue.settled();
  expect(stored).toBe(120);
  expect(performance.now() - started).toBeGreaterThan(500);
});
