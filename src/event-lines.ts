import { styleText } from "node:util";
import type { Retry, SessionEvent } from "./domain/sessions/event.ts";
import { indented, oneLine, printable } from "./printable.ts";

/** Formats events for a terminal. */
export interface EventLines {
  /** The text to print for one event; empty for events that are not shown. */
  of(event: SessionEvent): string;
  /** The incomplete last line of the current message. */
  rest(): string;
}

type Shade = "red" | "green" | "yellow" | "dim" | "bold";

/** Colours `text` if the terminal shows colours. */
export function shade(format: Shade, text: string, color: boolean): string {
  return color ? styleText(format, text, { validateStream: false }) : text;
}

/**
 * Makes a formatter of events. It has state: a message's text comes in parts, of which complete lines are printed,
 * and a tool call is printed once, and again only if it failed.
 */
export function createEventLines(color: boolean): EventLines {
  const shownTools = new Set<string>();
  let part = "";
  let unfinishedLine = "";

  const rest = (): string => {
    const text = unfinishedLine === "" ? "" : `${agentLine(unfinishedLine)}\n`;
    unfinishedLine = "";
    part = "";
    return text;
  };

  const message = (piece: { part: string; text: string }): string => {
    const before = piece.part === part ? "" : rest();
    part = piece.part;
    const lines = (unfinishedLine + piece.text).split("\n");
    unfinishedLine = lines.pop() ?? "";
    return before + lines.map((line) => `${agentLine(line)}\n`).join("");
  };

  const tool = (call: { toolCallId: string; title: string; status: string }): string => {
    const title = oneLine(call.title);
    if (call.status === "failed") return `  ${shade("red", "✗", color)} ${title}\n`;
    if (title === "" || shownTools.has(call.toolCallId)) return "";
    shownTools.add(call.toolCallId);
    return `  ${shade("dim", `· ${title}`, color)}\n`;
  };

  return {
    rest,
    of(raw) {
      const event = printableEvent(raw);
      if (event.type === "agent.message") return message(event.data);
      const text = event.type === "agent.tool" ? tool(event.data) : lineOf(event, color);
      return text === "" ? "" : rest() + text;
    },
  };
}

/** Begins each line of an agent's message, so that no line of an agent can look like one of Offstage's. */
const saidMark = "│ ";

function agentLine(line: string): string {
  return line === "" ? saidMark.trimEnd() : `${saidMark}${line}`;
}

function printableEvent(event: SessionEvent): SessionEvent {
  return JSON.parse(JSON.stringify(event), printableValue) as SessionEvent;
}

function printableValue(_key: string, value: unknown): unknown {
  return typeof value === "string" ? printable(value) : value;
}

function retried({ at, reason }: Retry): string {
  return `queued: ${oneLine(reason)} It is tried again at ${at}.`;
}

function lineOf(event: SessionEvent, color: boolean): string {
  switch (event.type) {
    case "session.status":
      if (event.data.to === "waiting")
        return `${shade("yellow", `waiting: ${oneLine(event.data.reason ?? "")}`, color)}\n`;
      if (event.data.retry !== undefined) return `${shade("yellow", retried(event.data.retry), color)}\n`;
      return event.data.to === "queued" ? shade("dim", "queued\n", color) : "";
    case "notice":
      return `${shade(event.data.level === "warning" ? "yellow" : "dim", indented(event.data.text), color)}\n`;
    case "message.withdrawn":
      return `${shade("dim", "a message was withdrawn", color)}\n`;
    case "step.started":
      return `${shade("bold", `▸ ${event.data.step}`, color)}\n`;
    case "setup.output":
      return event.data.text.replaceAll(/^(?=.)/gmu, `  ${saidMark}`);
    case "gate.decided":
      return `${event.data.output}\n${event.data.log}`.trim().replaceAll(/^(?=.)/gmu, `  ${saidMark}`) + "\n";
    case "step.progress":
      return `  ${shade("dim", oneLine(event.data.text) + percent(event.data.fraction), color)}\n`;
    case "step.completed":
      return `${shade("green", "✓", color)} ${event.data.step}  ${duration(event.data.durationMs)}\n`;
    case "step.failed":
      return `${shade("red", "✗", color)} ${event.data.step}  ${duration(event.data.durationMs)}\n`;
    case "agent.started":
      return `  ${shade("dim", oneLine(`${event.data.provider} ${event.data.model ?? ""}`), color)}\n`;
    case "agent.permission":
      return `  ${shade("dim", `permission ${event.data.decision}: ${oneLine(event.data.title)}`, color)}\n`;
    case "egress.refused":
      return `  ${shade("yellow", `refused ${oneLine(event.data.host)}:${event.data.port} (${event.data.reason})`, color)}\n`;
    case "workspace.commit":
      return `  ${oneLine(event.data.sha).slice(0, 8)} ${oneLine(event.data.subject)}\n`;
    case "branch.pushed":
      return `  pushed ${oneLine(event.data.branch)}\n`;
    default:
      return "";
  }
}

function percent(fraction: number | undefined): string {
  return fraction === undefined ? "" : ` ${Math.round(fraction * 100)} %`;
}

/** Formats milliseconds as `340 ms`, `1.2 s` or `2 min 5 s`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${milliseconds} ms`;
  const tenths = Math.round(milliseconds / 100);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
