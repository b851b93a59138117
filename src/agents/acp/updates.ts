import { setImmediate as nextTurn } from "node:timers/promises";
import type * as acp from "@agentclientprotocol/sdk";
import { z } from "zod";
import { cutMiddle, storable } from "../../domain/fields/text.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createEventQueue } from "./event-queue.ts";

/** Text arrives word by word: gather it for this long, instead of thousands of events. */
const gatherMs = 250;
const gatherLength = 4_000;
/** Maximum characters of a tool's output in one event. */
const outputLimit = 20_000;
const contentLimit = 20;
const planLimit = 200;
/**
 * Maximum characters of all texts of one event, because an event costs the server's event loop time in proportion to
 * its length. Each text may still have `shortestCut`.
 */
const textsLimit = 48_000;
const shortestCut = 200;
/** Maximum characters of a path or an id. */
const nameLimit = 1_024;
/** Maximum characters of the agent's last message; a pull request's body has fewer. */
const lastLimit = 100_000;
/** Number of tool calls whose state is kept for later updates. */
const toolLimit = 1_000;
/** The least that an event counts towards `turnLimit`: each is a row of the database. */
const leastCost = 1_000;
/** Updates that may wait to be stored before the harness's output is no longer read. */
const waitingLimit = 50;
/** Maximum characters of one turn's events, so that an agent can't fill the database. */
const turnLimit = 256 * 1024 * 1024;

type ToolState = Extract<NewEvent, { type: "agent.tool" }>["data"];
type TextType = "agent.message" | "agent.thought";

/** See `createUpdates`. */
export type Updates = ReturnType<typeof createUpdates>;

/**
 * Converts the protocol's updates to events, and emits one after the other.
 * @param mask finds secrets before a text is cut, and keeps back text that may be the beginning of one
 */
export function createUpdates(
  emit: (event: NewEvent) => Promise<void>,
  touch: () => void,
  mask: Mask,
  limit = turnLimit,
) {
  const tools = new Map<string, ToolState>();
  /** Output of commands so far, for harnesses that send it in chunks. */
  const outputs = new Map<string, string>();
  let listening = false;
  let part = 0;
  let gathered: { type: TextType; text: string } | null = null;
  let timer: NodeJS.Timeout | null = null;
  let last = "";
  let seen = false;
  let toolCalls = 0;
  let left = limit;
  const { push, ...queue } = createEventQueue(emit);

  /** Emits an event of the harness within the turn's limit. */
  function pushUpdate(event: NewEvent): void {
    if (left <= 0) return;
    left -= Math.max(leastCost, JSON.stringify(event).length);
    void push(event);
    if (left > 0) return;
    const text = "The agent wrote more in this turn than is stored: the rest is not shown.";
    void push({ type: "notice", data: { level: "warning", text } });
  }

  /** @param keep characters at the end that wait for later text */
  function flush(keep = 0): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered === null) return;
    const { type, text } = gathered;
    const ready = text.slice(0, text.length - keep);
    gathered = keep === 0 ? null : { type, text: text.slice(text.length - keep) };
    for (const piece of piecesOf(ready.length > outputLimit ? mask.text(ready) : ready))
      pushUpdate({ type, data: { part: String(part), text: piece } });
  }

  function flushFinished(): void {
    flush(mask.unfinished(gathered?.text ?? ""));
  }

  /** Another kind of update ends a message. */
  function endPart(): void {
    flush();
    part += 1;
  }

  function takeText(type: TextType, text: string): void {
    if (text === "") return;
    if (gathered !== null && gathered.type !== type) endPart();
    if (left <= 0) return;
    if (type === "agent.message") last = addedTo(last, text, mask);
    gathered = { type, text: (gathered?.text ?? "") + text };
    if (gathered.text.length > gatherLength) flushFinished();
    else timer ??= setTimeout(flushFinished, gatherMs);
  }

  function takeTool(update: acp.ToolCall | acp.ToolCallUpdate): void {
    if (left <= 0) return;
    const { toolCallId } = update;
    const before = tools.get(toolCallId);
    const piece = outputIn(update._meta);
    if (piece !== null)
      outputs.set(toolCallId, cutMiddle(mask.text(`${outputs.get(toolCallId) ?? ""}${piece}`), outputLimit));
    const next = withOutput(mergeTool(before, update, mask), outputs.get(toolCallId) ?? "");
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(next)) return;
    if (before === undefined) toolCalls += 1;
    tools.set(toolCallId, next);
    if (tools.size > toolLimit) forgetOldest();
    endPart();
    last = "";
    pushUpdate({ type: "agent.tool", data: next });
  }

  /** Drops a finished call if there is one: updates are more likely for running ones. */
  function forgetOldest(): void {
    const [oldest] = [...tools].find(([, tool]) => !runs(tool)) ?? [...tools][0] ?? [];
    if (oldest === undefined) return;
    tools.delete(oldest);
    outputs.delete(oldest);
  }

  async function take(update: acp.SessionUpdate): Promise<void> {
    touch();
    if (!listening) return;
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
      case "agent_thought_chunk":
        seen = true;
        takeText(
          update.sessionUpdate === "agent_message_chunk" ? "agent.message" : "agent.thought",
          textOf(update.content),
        );
        break;
      case "tool_call":
      case "tool_call_update":
        seen = true;
        takeTool(update);
        break;
      case "plan":
        endPart();
        pushUpdate({
          type: "agent.plan",
          data: {
            entries: update.entries
              .slice(0, planLimit)
              .map(({ content, status }, _index, { length }) => ({ text: shown(content, length, mask), status })),
          },
        });
        break;
      case "usage_update":
        pushUpdate({
          type: "agent.usage",
          data: { contextUsed: count(update.used), contextSize: count(update.size) },
        });
        break;
      default:
    }
  }

  return {
    take,
    tell: push,
    /**
     * Settles when the harness may be read on: if the database is slow, the harness waits, so that updates don't pile
     * up here.
     */
    async room(): Promise<void> {
      await nextTurn();
      await queue.hasRoom(waitingLimit);
    },
    /** From now on updates are new, not a session's replayed history. */
    listen: () => void (listening = true),
    started: () => listening,
    anything: () => seen,
    toolCalls: () => toolCalls,
    toolRuns: () => [...tools.values()].some(runs),
    /** Whether an event could not be stored. */
    failed: queue.failed,
    finalMessage: () => cutMiddle(last.trim(), lastLimit),
    /** @throws errors of `emit` */
    settled: () => (flush(), queue.settled()),
  };
}

/** Not every harness sends `in_progress`. While the model still writes a tool's input, the tool does not run. */
function runs({ status, input }: ToolState): boolean {
  return status === "in_progress" || (status === "pending" && input !== undefined && input !== "{}");
}

const outputSchema = z.object({ terminal_output_delta: z.object({ data: z.string() }) });

/** A command's output since the last update, from harnesses with the extension `terminal_output_delta`. */
function outputIn(extra: unknown): string | null {
  return outputSchema.safeParse(extra).data?.terminal_output_delta.data ?? null;
}

/** The output is added once the tool has ended: events for each chunk would repeat all earlier chunks. */
function withOutput(tool: ToolState, output: string): ToolState {
  const isOver = tool.status === "completed" || tool.status === "failed";
  return output === "" || !isOver || tool.content.length > 0
    ? tool
    : { ...tool, content: [{ type: "text", text: output }] };
}

function mergeTool(before: ToolState | undefined, update: acp.ToolCall | acp.ToolCallUpdate, mask: Mask): ToolState {
  const input =
    update.rawInput === undefined ? before?.input : startOf(JSON.stringify(update.rawInput), outputLimit, mask);
  return {
    toolCallId: startOf(update.toolCallId, nameLimit, mask),
    title: titleOf(update.title, mask) ?? before?.title ?? startOf(update.toolCallId, titleLimit, mask),
    kind: update.kind ?? before?.kind ?? "other",
    status: update.status ?? before?.status ?? "pending",
    locations:
      update.locations
        ?.slice(0, contentLimit)
        .map(({ path, line }) => ({ path: startOf(path, nameLimit, mask), ...(line != null && { line }) })) ??
      before?.locations ??
      [],
    content:
      update.content
        ?.slice(0, contentLimit)
        .flatMap((content, _index, { length }) => contentOf(content, 2 * length, mask)) ??
      before?.content ??
      [],
    ...(input !== undefined && { input }),
  };
}

const titleLimit = 500;
/** Characters of a text that are searched for secrets, far more than are kept: what is kept ends far before the cut. */
const lookedThrough = 400_000;

/** The beginning of a text, masked before it is cut. */
function startOf(text: string, length: number, mask: Mask): string {
  return mask.text(text.slice(0, lookedThrough)).slice(0, length);
}

function titleOf(title: string | null | undefined, mask: Mask): string | null {
  return title == null ? null : startOf(title, titleLimit, mask);
}

/** Shortens a text that is one of `among` texts in an event. */
function shown(text: string, among: number, mask: Mask): string {
  const room = Math.max(shortestCut, Math.floor(textsLimit / among));
  return cutMiddle(mask.text(cutMiddle(text, lookedThrough)), Math.min(outputLimit, room));
}

/** A count as an event may have it, whatever number was sent. */
function count(value: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value) || 0));
}

/** Appends output, and drops the middle once it is much longer than what is kept. */
function addedTo(text: string, more: string, mask: Mask): string {
  const longer = text + more;
  return longer.length < 4 * lastLimit ? longer : cutMiddle(mask.text(longer), 2 * lastLimit);
}

/** @param among maximum number of texts in the event */
function contentOf(content: acp.ToolCallContent, among: number, mask: Mask): ToolState["content"] {
  if (content.type === "content") return [{ type: "text", text: shown(textOf(content.content), among, mask) }];
  if (content.type === "diff") {
    const { path, oldText, newText } = content;
    return [
      {
        type: "diff",
        path: startOf(path, nameLimit, mask),
        oldText: oldText == null ? null : shown(oldText, among, mask),
        newText: shown(newText, among, mask),
      },
    ];
  }
  return [];
}

/** Splits a text into events of limited length, never inside a character. */
function* piecesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(text.length, from + outputLimit);
    if (to < text.length && /[\ud800-\udbff]/u.test(text.charAt(to - 1))) to -= 1;
    yield text.slice(from, to);
    from = to;
  }
}

function textOf(block: acp.ContentBlock): string {
  return block.type === "text" ? storable(block.text) : "";
}
