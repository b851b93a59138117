import { describe, expect, it } from "vitest";
import type { NewEvent, SessionEvent } from "../domain/event.ts";
import { createEventLines, duration } from "./event-lines.ts";
import { repositoryAddress } from "./run.ts";

function lines(events: NewEvent[]): string {
  const printer = createEventLines(false);
  const numbered = events.map(
    (event, index) => ({ ...event, seq: index + 1, createdAt: "2026-01-01T00:00:00.000Z" }) satisfies SessionEvent,
  );
  return numbered.map((event) => printer.of(event)).join("") + printer.rest();
}

const tool = (status: "pending" | "completed" | "failed", title = "Edit greet.ts"): NewEvent => ({
  type: "agent.tool",
  data: { toolCallId: "t1", title, kind: "edit", status, locations: [], content: [] },
});

describe("the lines of a followed session", () => {
  it("tell each step with its duration", () => {
    const text = lines([
      { type: "step.started", data: { step: "prepare", attempt: 1 } },
      { type: "step.progress", data: { step: "prepare", text: "fetching", fraction: 0.5 } },
      { type: "step.completed", data: { step: "prepare", durationMs: 1_234 } },
    ]);
    expect(text).toBe("▸ prepare\n  fetching 50 %\n✓ prepare  1.2 s\n");
  });

  it("join a message that comes in pieces, and end it before what follows", () => {
    const text = lines([
      { type: "agent.message", data: { part: "a", text: "Hello, " } },
      { type: "agent.message", data: { part: "a", text: "world\nand" } },
      { type: "agent.message", data: { part: "b", text: "next" } },
      tool("pending"),
    ]);
    expect(text).toBe("Hello, world\nand\nnext\n  · Edit greet.ts\n");
  });

  it("tell a tool call once, and again when it fails", () => {
    expect(lines([tool("pending", ""), tool("pending"), tool("completed")])).toBe("  · Edit greet.ts\n");
    expect(lines([tool("pending"), tool("failed")])).toBe("  · Edit greet.ts\n  ✗ Edit greet.ts\n");
  });

  it("let no escape sequence of the agent's reach the terminal", () => {
    const text = lines([
      { type: "agent.message", data: { part: "a", text: "\u001b]52;c;aGk=\u0007\u001b[2Jhi\u009b" } },
    ]);
    expect(text).toBe("hi\n");
  });

  it.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [1_000, "1.0 s"],
    [59_949, "59.9 s"],
    [59_990, "1 min 0 s"],
    [125_000, "2 min 5 s"],
    [119_700, "2 min 0 s"],
  ])("write %i ms as %s", (milliseconds, text) => {
    expect(duration(milliseconds)).toBe(text);
  });
});

describe("--repository", () => {
  it.each([
    [".", "/home/me/project"],
    ["../other", "/home/me/other"],
    ["/srv/git/a.git", "/srv/git/a.git"],
    ["sub/folder", "/home/me/project/sub/folder"],
    ["https://github.com/a/b", "https://github.com/a/b"],
    ["ssh://git@host/a/b", "ssh://git@host/a/b"],
    ["git@github.com:a/b.git", "git@github.com:a/b.git"],
    ["file:///srv/git/a", "file:///srv/git/a"],
    ["./odd:name", "/home/me/project/odd:name"],
  ])("%s is %s", (given, expected) => {
    expect(repositoryAddress(given, "/home/me/project")).toBe(expected);
  });
});
