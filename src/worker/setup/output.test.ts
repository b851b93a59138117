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
  const emitted = () => events.map(({ data }) => data as { text: string; state: string });
  return { output, emitted, mask };
}

test("what a script prints is emitted a moment later, together", async () => {
  const { output, emitted } = gather();
  output.take("one\n");
  output.take("two\n");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(emitted()).toEqual([expect.objectContaining({ text: "one\ntwo\n", state: "running" })]);
  await output.end("completed");
  expect(emitted().at(-1)).toMatchObject({ text: "", state: "completed" });
});

test("a secret that is not printed whole yet waits for its rest", async () => {
  const { output, emitted, mask } = gather();
  output.take(`token ${secret.slice(0, 12)}`);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(emitted().map(({ text }) => text)).toEqual(["token "]);
  output.take(secret.slice(12));
  await output.end("completed");
  expect(
    emitted()
      .map(({ text }) => mask.text(text))
      .join(""),
  ).not.toContain("horse");
  expect(output.tail()).not.toContain("horse");
});

test("nothing is emitted any more after the attempt has ended by an error", async () => {
  const { output, emitted } = gather();
  output.take("late\n");
  output.close();
  await vi.advanceTimersByTimeAsync(1_000);
  expect([emitted(), vi.getTimerCount()]).toEqual([[], 0]);
});
