import { beforeEach, expect, test, vi } from "vitest";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createSafePoints, type SafePoints } from "./safe-points.ts";

let draining: AbortController;
let handOver: ReturnType<typeof vi.fn<() => void>>;
let points: SafePoints;

beforeEach(() => {
  draining = new AbortController();
  handOver = vi.fn<() => void>();
  points = createSafePoints(draining.signal, handOver);
});

const tool = (toolCallId: string, status: "in_progress" | "completed" | "failed"): NewEvent => ({
  type: "agent.tool",
  data: { toolCallId, status, title: "", kind: "execute", locations: [], content: [] },
});

test("an agent that thinks is handed over at once", () => {
  points.enter();
  points.observe(tool("a", "in_progress"));
  points.observe(tool("a", "completed"));
  expect(handOver).not.toHaveBeenCalled();
  draining.abort();
  expect(handOver).toHaveBeenCalledOnce();
});

test("an agent whose commands run is handed over when the last of them is over", () => {
  points.enter();
  points.observe(tool("a", "in_progress"));
  points.observe(tool("b", "in_progress"));
  draining.abort();
  points.observe(tool("a", "failed"));
  expect(handOver).not.toHaveBeenCalled();
  points.observe(tool("b", "completed"));
  expect(handOver).toHaveBeenCalled();
});

test("what is not an agent's turn goes on to its end, and the next turn does not begin", () => {
  points.enter();
  points.leave();
  draining.abort();
  expect(handOver).not.toHaveBeenCalled();
  points.enter();
  expect(handOver).toHaveBeenCalledOnce();
});
