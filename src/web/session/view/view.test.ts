import { describe, expect, it } from "vitest";
import type { NewEvent, SessionEvent } from "../../../domain/sessions/event.ts";
import { english } from "../../texts/en/session.ts";
import { noteText } from "../transcript/notes.tsx";
import { applyEvents, emptyView, type SessionView } from "./view.ts";

function numbered(events: readonly NewEvent[]): SessionEvent[] {
  return events.map((event, index) => ({ ...event, seq: index + 1, createdAt: "2026-11-21T00:00:00.000Z" }));
}

function viewOf(...events: NewEvent[]): SessionView {
  return applyEvents(emptyView, numbered(events));
}

const started: NewEvent = { type: "agent.started", data: { provider: "opencode", model: null, resumed: false } };
const message = (part: string, text: string): NewEvent => ({ type: "agent.message", data: { part, text } });
const tool = (toolCallId: string, status: "in_progress" | "completed", title = "ls"): NewEvent => ({
  type: "agent.tool",
  data: { toolCallId, title, kind: "execute", status, locations: [], content: [] },
});
const shown = (view: SessionView): string[] =>
  view.items.map((item) =>
    item.kind === "tool"
      ? `${item.tool.title} ${item.tool.status}`
      : item.kind === "note"
        ? noteText(item.note, english.notes)
        : "text" in item
          ? item.text
          : item.host,
  );

describe("a session's view", () => {
  it("is the same whether events come once, again, or in two overlapping parts", () => {
    const events = numbered([
      started,
      message("0", "Hel"),
      message("0", "lo"),
      tool("a", "in_progress"),
      tool("a", "completed"),
    ]);
    const once = applyEvents(emptyView, events);
    expect(applyEvents(once, events)).toEqual(once);
    expect(applyEvents(applyEvents(emptyView, events.slice(0, 3)), events.slice(1))).toEqual(once);
    expect(shown(once)).toEqual(["Started opencode", "Hello", "ls completed"]);
  });

  it("does not write a second turn's texts and tools into those of the first", () => {
    const view = viewOf(
      started,
      message("0", "one"),
      tool("a", "completed", "first"),
      started,
      message("0", "two"),
      tool("a", "in_progress", "second"),
    );
    expect(shown(view)).toEqual([
      "Started opencode",
      "one",
      "first completed",
      "Started opencode",
      "two",
      "second in_progress",
    ]);
  });

  it("tells each step's state and time, and begins anew with the next run", () => {
    const ran = viewOf(
      { type: "step.started", data: { step: "prepare", attempt: 1 } },
      { type: "step.progress", data: { step: "prepare", text: "Receiving objects", fraction: 0.5 } },
    );
    expect(ran.steps[0]).toMatchObject({ state: "running", progress: { fraction: 0.5 } });
    const done = applyEvents(ran, [
      {
        seq: 3,
        createdAt: "2026-11-21T00:00:01.000Z",
        type: "step.completed",
        data: { step: "prepare", durationMs: 900 },
      },
    ]);
    expect(done.steps[0]).toMatchObject({ state: "done", durationMs: 900, progress: null });
    const again = applyEvents(done, [
      {
        seq: 4,
        createdAt: "2026-11-21T00:00:02.000Z",
        type: "session.status",
        data: { from: "completed", to: "queued" },
      },
    ]);
    expect(again.steps.every(({ state }) => state === "waiting")).toBe(true);
  });

  it("has nothing run on once the session was cancelled, and counts no time after that", () => {
    const ran = viewOf(
      { type: "step.started", data: { step: "agent", attempt: 1 } },
      started,
      tool("a", "completed", "first"),
      tool("b", "in_progress", "second"),
    );
    const cancelled = applyEvents(ran, [
      {
        seq: 5,
        createdAt: "2026-11-21T00:00:03.000Z",
        type: "session.status",
        data: { from: "running", to: "cancelled" },
      },
    ]);
    expect(cancelled.steps.map(({ state, durationMs }) => [state, durationMs])).toContainEqual(["stopped", 3_000]);
    expect(shown(cancelled)).toEqual(["Started opencode", "first completed", "second stopped", "Cancelled"]);
  });

  it("says why a session failed", () => {
    const failure = {
      code: "push_rejected",
      reason: "The forge refused the push.",
      retryable: false,
      remedy: "Allow it.",
    } as const;
    const view = viewOf({ type: "session.status", data: { from: "running", to: "failed", failure } });
    expect(shown(view)).toEqual(["The forge refused the push."]);
  });
});
