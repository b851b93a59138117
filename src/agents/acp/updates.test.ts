import { expect, test } from "vitest";
import { createMask } from "../../domain/masking/mask.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { Updates } from "./updates.ts";

function listening(limit?: number) {
  const events: NewEvent[] = [];
  const emit = (event: NewEvent): Promise<void> => Promise.resolve(void events.push(event));
  const updates = new Updates(emit, () => undefined, createMask(["the-secret"]), limit);
  updates.listen();
  return { updates, events };
}

const say = (text: string) => ({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }) as const;
const textsOf = (events: readonly NewEvent[]) =>
  events.flatMap((event) => (event.type === "agent.message" ? [event.data.text] : []));

test("a text that comes at once is emitted in pieces, whole characters each, and no secret is cut in two", async () => {
  const { updates, events } = listening();
  // With a secret and a character across each place where it would be cut.
  const text = `${"x".repeat(19_995)}the-secret${"💥".repeat(30_000)}`;
  await updates.take(say(text));
  await updates.settled();
  const texts = textsOf(events);
  expect(Math.max(...texts.map(({ length }) => length))).toBeLessThanOrEqual(20_000);
  expect(texts.every((piece) => piece.isWellFormed())).toBe(true);
  expect(texts.join("")).toBe(text.replace("the-secret", "[secret]"));
});

test("output beyond the limit of a turn is dropped, and that is reported once", async () => {
  const { updates, events } = listening(10_000);
  for (let count = 0; count < 20; count += 1) {
    await updates.take(say("x".repeat(5_000)));
    await updates.take({ sessionUpdate: "tool_call", toolCallId: String(count), title: "look" });
  }
  await updates.settled();
  expect(events.filter(({ type }) => type === "notice")).toHaveLength(1);
  expect(events.length).toBeLessThan(8);
});

test("names and plans have a length", async () => {
  const { updates, events } = listening();
  const long = "x".repeat(1_000_000);
  await updates.take({
    sessionUpdate: "tool_call",
    toolCallId: long,
    title: long,
    locations: [{ path: long }],
    content: [{ type: "diff", path: long, newText: "" }],
  });
  await updates.take({
    sessionUpdate: "plan",
    entries: Array.from({ length: 10_000 }, () => ({
      content: "do",
      priority: "low" as const,
      status: "pending" as const,
    })),
  });
  await updates.settled();
  expect(JSON.stringify(events).length).toBeLessThan(50_000);
});
