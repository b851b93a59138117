import { z } from "zod";
import { cutMiddle } from "../fields/text.ts";
import { toolContentSchema, type SessionEvent } from "./event.ts";
import type { SessionDetail } from "./session.ts";

const at = z.iso.datetime();
const pullRequest = { number: z.number().int(), url: z.string() };

/** A part of a session's transcript: what was said and done, without the steps around it. */
export const transcriptEntrySchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("user"), at, text: z.string() }),
  z.object({ type: z.literal("agent"), at, text: z.string() }),
  z.object({ type: z.literal("thought"), at, text: z.string() }),
  z.object({
    type: z.literal("tool"),
    at,
    title: z.string(),
    kind: z.string(),
    status: z.string(),
    input: z.string().optional(),
    content: z.array(toolContentSchema),
  }),
  z.object({ type: z.literal("notice"), at, level: z.string(), text: z.string() }),
  z.object({ type: z.literal("status"), at, status: z.string(), reason: z.string().optional() }),
  z.object({ type: z.literal("commit"), at, sha: z.string(), subject: z.string() }),
  z.object({ type: z.literal("pullRequest"), at, state: z.string(), ...pullRequest }),
]);
/** See `transcriptEntrySchema`. */
export type TranscriptEntry = z.infer<typeof transcriptEntrySchema>;

/** Makes a transcript of a session's events, which come in order. */
export interface TranscriptReader {
  /** @returns the entries that are complete with this event */
  add(event: SessionEvent): TranscriptEntry[];
  /** @returns the entries that are still open */
  end(): TranscriptEntry[];
}

/** Begins to read a session's events. What comes in chunks is one entry, and so is a tool call with all that came of it. */
export function readTranscript(): TranscriptReader {
  /** The text that may get more chunks. */
  let open: { entry: Extract<TranscriptEntry, { type: "agent" | "thought" }>; part: string } | null = null;
  /** Tool calls that have not ended, by their id, in the order in which they began. */
  const calls = new Map<string, TranscriptEntry>();

  function close(): TranscriptEntry[] {
    const closed = open === null ? [] : [open.entry];
    open = null;
    return closed;
  }

  function addText(event: Extract<SessionEvent, { type: "agent.message" | "agent.thought" }>): TranscriptEntry[] {
    const type = event.type === "agent.message" ? "agent" : "thought";
    const { part, text } = event.data;
    if (open?.entry.type === type && open.part === part) {
      open = { part, entry: { ...open.entry, text: open.entry.text + text } };
      return [];
    }
    const before = close();
    open = { part, entry: { type, at: event.createdAt, text } };
    return before;
  }

  function addCall(event: Extract<SessionEvent, { type: "agent.tool" }>): TranscriptEntry[] {
    const { toolCallId, title, kind, status, input, content } = event.data;
    const began = calls.get(toolCallId);
    const call = { type: "tool", at: began?.at ?? event.createdAt, title, kind, status, content } as const;
    const entry = input === undefined ? call : { ...call, input };
    if (status === "pending" || status === "in_progress") {
      calls.set(toolCallId, entry);
      return [];
    }
    calls.delete(toolCallId);
    return [...close(), entry];
  }

  function endTurn(): TranscriptEntry[] {
    const left = [...close(), ...calls.values()];
    calls.clear();
    return left;
  }

  return {
    add(event) {
      if (event.type === "agent.message" || event.type === "agent.thought") return addText(event);
      if (event.type === "agent.tool") return addCall(event);
      const entry = entryOf(event);
      const endsTurn = event.type === "agent.turn" || event.type === "session.status" || event.type === "message.user";
      if (entry === null && !endsTurn) return [];
      return [...(endsTurn ? endTurn() : close()), ...(entry === null ? [] : [entry])];
    },
    end: endTurn,
  };
}

/** An event that is an entry by itself; null if it is none. */
function entryOf(event: SessionEvent): TranscriptEntry | null {
  const { createdAt: time } = event;
  switch (event.type) {
    case "message.user":
      return { type: "user", at: time, text: event.data.text };
    case "message.withdrawn":
      return { type: "notice", at: time, level: "info", text: "A message was withdrawn before a turn took it." };
    case "notice":
      return { type: "notice", at: time, ...event.data };
    case "session.status": {
      const reason = event.data.failure?.reason ?? event.data.reason;
      return { type: "status", at: time, status: event.data.to, ...(reason !== undefined && { reason }) };
    }
    case "workspace.commit":
      return { type: "commit", at: time, sha: event.data.sha, subject: event.data.subject };
    case "pullRequest.opened":
      return { type: "pullRequest", at: time, state: "open", number: event.data.number, url: event.data.url };
    case "pullRequest.closed":
      return { type: "pullRequest", at: time, state: event.data.state, number: event.data.number, url: event.data.url };
    default:
      return null;
  }
}

/** Most characters of one text in Markdown, for people to read; JSON has all of it. */
const shownCharacters = 10_000;

/** The beginning of a transcript in Markdown. */
export function markdownHead(session: SessionDetail): string {
  const facts = [
    `Session: ${session.htmlUrl}`,
    `Status: ${session.status}`,
    `Created: ${session.createdAt}`,
    ...session.repositories.map(({ name }) => `Repository: ${oneLine(name)}`),
    `Branch: ${oneLine(session.branchName)}`,
    ...session.pullRequests.map(({ url, state }) => `Pull request: ${oneLine(url)} (${state})`),
    ...(session.eventsRemovedThrough > 0 ? ["Its oldest events were removed for their age or size."] : []),
  ];
  return `# ${oneLine(session.title)}\n\n${facts.map((fact) => `- ${fact}`).join("\n")}\n`;
}

/**
 * An entry in Markdown. Each line of others' words begins with `>`, so that nothing that an agent writes can be taken for a line of the
 * transcript's own.
 */
export function markdownOf(entry: TranscriptEntry): string {
  switch (entry.type) {
    case "user":
      return section("User", entry.at, entry.text);
    case "agent":
      return section("Agent", entry.at, entry.text);
    case "thought":
      return section("Agent, thinking", entry.at, entry.text);
    case "tool":
      return section(`Tool: ${oneLine(entry.title)} (${entry.status})`, entry.at, contentOf(entry));
    case "notice":
      return section("Notice", entry.at, entry.text);
    case "status":
      return section(`Status: ${entry.status}`, entry.at, entry.reason ?? "");
    case "commit":
      return section(`Commit ${oneLine(entry.sha)}`, entry.at, entry.subject);
    case "pullRequest":
      return section(`Pull request #${entry.number}: ${entry.state}`, entry.at, entry.url);
  }
}

function contentOf({ input, content }: Extract<TranscriptEntry, { type: "tool" }>): string {
  const parts = content.map((part) =>
    part.type === "text" ? fenced(part.text) : `Edited ${code(part.path)}:\n\n${fenced(part.newText)}`,
  );
  return [...(input === undefined ? [] : [fenced(input)]), ...parts].join("\n\n");
}

/** A fence that is longer than any within the text, so that the text does not end it. */
function fenced(text: string): string {
  const shown = cutMiddle(text, shownCharacters);
  const longest = Math.max(0, ...(shown.match(/`+/gu) ?? []).map(({ length }) => length));
  const fence = "`".repeat(Math.max(3, longest + 1));
  return `${fence}text\n${shown}\n${fence}`;
}

const code = (text: string): string => `\`${oneLine(text).replaceAll("`", "'")}\``;

function section(heading: string, time: string, text: string): string {
  const shown = withoutControls(cutMiddle(text, shownCharacters * 4)).trim();
  const quoted = shown === "" ? "" : `\n${shown.replaceAll(/^/gmu, "> ")}\n`;
  return `\n## ${heading}\n\n${time}\n${quoted}`;
}

/** Without what controls a terminal that the file is printed on: all control characters but tabs and line breaks. */
function withoutControls(text: string): string {
  return text.replaceAll(/\r\n?/gu, "\n").replaceAll(/[^\P{Cc}\n\t]/gu, "");
}

/** Most characters of a heading. */
const headingCharacters = 300;

const oneLine = (text: string): string =>
  withoutControls(text.slice(0, headingCharacters)).toWellFormed().replaceAll(/\s+/gu, " ").trim();
