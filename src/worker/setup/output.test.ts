import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createMask } from "../../domain/masking/mask.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createOutput } from "./output.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const secret = "correct-horse-battery-staple";

function gather() {
  const events: NewEvent[] = [];
  const emit = (event: NewEvent): Promise<void> => {
    events.push(event);
    return Promise.resolve();
  };
  const mask = createMask([secret]);
  const output = createOutput({ emit, mask }, { id: "id", name: "acme/one" });
  const told = () => events.map(({ data }) => data as { text: string; state: string });
  return { output, told, mask };
}

test("what a script prints is told a moment later, together", async () => {
  const { output, told } = gather();
  output.take("one\n");
  output.take("two\n");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told()).toEqual([expect.objectContaining({ text: "one\ntwo\n", state: "running" })]);
  await output.end("completed");
  expect(told().at(-1)).toMatchObject({ text: "", state: "completed" });
});

test("a secret that is not printed whole yet waits for its rest", async () => {
  const { output, told, mask } = gather();
  output.take(`token ${secret.slice(0, 12)}`);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(told().map(({ text }) => text)).toEqual(["token "]);
  output.take(secret.slice(12));
  await output.end("completed");
  expect(
    told()
      .map(({ text }) => mask.text(text))
      .join(""),
  ).not.toContain("horse");
  expect(output.tail()).not.toContain("horse");
});

test("nothing is told any more after the attempt has ended by an error", async () => {
  const { output, told } = gather();
  output.take("late\n");
  output.close();
  await vi.advanceTimersByTimeAsync(1_000);
  expect([told(), vi.getTimerCount()]).toEqual([[], 0]);
});
