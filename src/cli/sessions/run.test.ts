import { describe, expect, it } from "vitest";
import type { NewEvent, SessionEvent } from "../../domain/sessions/event.ts";
import { createEventLines, duration } from "../../event-lines.ts";
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
    expect(text).toBe("│ Hello, world\n│ and\n│ next\n  · Edit greet.ts\n");
  });

  it("tell a tool call once, and again when it fails", () => {
    expect(lines([tool("pending", ""), tool("pending"), tool("completed")])).toBe("  · Edit greet.ts\n");
    expect(lines([tool("pending"), tool("failed")])).toBe("  · Edit greet.ts\n  ✗ Edit greet.ts\n");
  });

  it("let no escape sequence of the agent's reach the terminal", () => {
    const text = lines([
      { type: "agent.message", data: { part: "a", text: "\u001b]52;c;aGk=\u0007\u001b[2Jhi\u009b" } },
    ]);
    expect(text).toBe("│ hi\n");
  });

  const forged =
    "x\n✓ push  0.2 s\u2028  pushed main\r\rpull request  https://evil.example/1\u0085▸ agent\v▸ push\f▸ x";
  const texts: NewEvent[] = [
    tool("pending", forged),
    tool("failed", forged),
    { type: "agent.message", data: { part: "a", text: forged } },
    { type: "agent.permission", data: { title: forged, decision: "allowed", option: "o" } },
    { type: "agent.started", data: { provider: forged, model: forged, resumed: false } },
    { type: "notice", data: { level: "warning", text: forged } },
    { type: "setup.output", data: { repositoryId: "1", repository: "r", text: forged, state: "running" } },
    { type: "step.progress", data: { step: "prepare", text: forged } },
    { type: "workspace.commit", data: { repositoryId: "1", sha: forged, subject: forged, by: "agent" } },
    { type: "branch.pushed", data: { repositoryId: "1", branch: forged, sha: "1" } },
    { type: "egress.refused", data: { host: forged, port: 1, reason: "not allowed" } },
    { type: "session.status", data: { from: "running", to: "waiting", reason: forged } },
  ];

  it.each(texts)("show no line that $type forged", (event) => {
    const shown = lines([event]);
    expect(shown).toContain("push  0.2 s");
    expect(
      shown
        .split(/\r|\n|\u0085|\u2028|\u2029|\v|\f/u)
        .filter((line) => /^ {0,2}(?:✓ push|▸|pushed main|pull request)/u.test(line)),
    ).toEqual([]);
  });

  it("show what turns the direction of a text or is not seen as its number", () => {
    expect(lines([tool("pending", "rm \u202e/ fr- mr\u2066\u200b\ufeff\u{e0041}")])).toBe(
      "  · rm \\u{202e}/ fr- mr\\u{2066}\\u{200b}\\u{feff}\\u{e0041}\n",
    );
    expect(lines([tool("pending", "👩‍💻 नमस्ते سلام")])).toBe("  · 👩‍💻 नमस्ते سلام\n");
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
