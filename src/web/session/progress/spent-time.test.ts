import { expect, it } from "vitest";
import type { StepSpan } from "../view/steps.ts";
import type { Item } from "../view/view.ts";
import { spentTimeOf } from "./spent-time.ts";

const at = (seconds: number): string => new Date(Date.UTC(2026, 10, 21, 0, 0, seconds)).toISOString();

function call(key: number, kind: string, from: number, to: number | null): Item {
  const tool = {
    toolCallId: String(key),
    title: `call ${key}`,
    kind,
    status: "completed",
    locations: [],
    content: [],
  } as const;
  return {
    key,
    at: at(from),
    kind: "tool",
    tool: { ...tool, locations: [], content: [], endedAt: to === null ? null : at(to) },
  };
}

const agent: StepSpan = { key: 0, name: "agent", startedAt: at(0), endedAt: at(60), hasFailed: false };
const now = Date.parse(at(60));

it("adds up each kind, and what overlaps only once for the model", () => {
  const items = [call(1, "execute", 0, 20), call(2, "execute", 10, 30), call(3, "read", 40, 41)];
  const { kinds, modelMs } = spentTimeOf({ items, spans: [agent] }, now);
  expect(kinds).toEqual([
    ["execute", 40_000],
    ["read", 1_000],
  ]);
  expect(modelMs).toBe(29_000);
});

it("counts what still runs until now, and setups not among the agent's time", () => {
  const items = [call(1, "setup", 0, 50), call(2, "switch_mode", 30, null)];
  const { kinds, modelMs } = spentTimeOf({ items, spans: [{ ...agent, endedAt: null }] }, now);
  expect(kinds).toEqual([
    ["setup", 50_000],
    ["other", 30_000],
  ]);
  expect(modelMs).toBe(30_000);
});

it("is nothing before anything began", () => {
  expect(spentTimeOf({ items: [], spans: [] }, now)).toEqual({ kinds: [], modelMs: 0, calls: [] });
});
