import { setImmediate as nextTurn } from "node:timers/promises";
import type * as acp from "@agentclientprotocol/sdk";
import { z } from "zod";
import type { NewEvent } from "../../domain/event.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import { cutMiddle, storable } from "../../domain/text.ts";
import { createEventQueue } from "./event-queue.ts";

/** Text arrives word by word; an event for each would be thousands. */
const gatherMs = 250;
const gatherLength = 4_000;
/** How much of a tool's output one event holds. */
const outputLimit = 20_000;
const contentLimit = 20;
const planLimit = 200;
/** All texts of one event together, and each of them at least: what is told costs the server's event loop for its length. */
const textsLimit = 48_000;
const shortestCut = 200;
/** Of a path or an id. */
const nameLimit = 1_024;
/** The agent's last message: a pull request's body has less. */
const lastLimit = 100_000;
/** Tool calls of which the state is kept, for what is told of them later. */
const toolLimit = 1_000;
/** What an event without a word in it takes of `turnLimit`: a row of the database is not for nothing. */
const leastCost = 1_000;
/** Updates that wait to be told before the harness is no longer heard. */
const waitingLimit = 50;
/** How much of one turn is told, as characters: an agent could fill the database with its words. */
const turnLimit = 256 * 1024 * 1024;

type ToolState = Extract<NewEvent, { type: "agent.tool" }>["data"];
type TextType = "agent.message" | "agent.thought";

export type Updates = ReturnType<typeof createUpdates>;

/**
 * Turns the protocol's updates into events, told one after the other.
 * @param mask by which a secret is found before a text is cut, and one that comes in pieces is not told in pieces
 */
export function createUpdates(
  emit: (event: NewEvent) => Promise<void>,
  touch: () => void,
  mask: Mask,
  limit = turnLimit,
) {
  const tools = new Map<string, ToolState>();
  /** What commands printed so far, where a harness tells it in pieces. */
  const outputs = new Map<string, string>();
  let listening = false;
  let part = 0;
  let gathered: { type: TextType; text: string } | null = null;
  let timer: NodeJS.Timeout | null = null;
  let last = "";
  let seen = false;
  let toolCalls = 0;
  let left = limit;
  const { tell, ...queue } = createEventQueue(emit);

  /** What the harness says, which may be without end. */
  function tellUpdate(event: NewEvent): void {
    if (left <= 0) return;
    left -= Math.max(leastCost, JSON.stringify(event).length);
    void tell(event);
    if (left > 0) return;
    const text = "The agent said more in this turn than is kept: what comes after is not shown.";
    void tell({ type: "notice", data: { level: "warning", text } });
  }

  /** @param keep characters at the end that wait for what follows */
  function flush(keep = 0): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered === null) return;
    const { type, text } = gathered;
    const ready = text.slice(0, text.length - keep);
    gathered = keep === 0 ? null : { type, text: text.slice(text.length - keep) };
    for (const piece of piecesOf(ready.length > outputLimit ? mask.text(ready) : ready))
      tellUpdate({ type, data: { part: String(part), text: piece } });
  }

  function flushFinished(): void {
    flush(mask.unfinished(gathered?.text ?? ""));
  }

  /** A message ends where something else comes between. */
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
    tellUpdate({ type: "agent.tool", data: next });
  }

  /** One that is over, if there is one: more is told of those that run. */
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
        tellUpdate({
          type: "agent.plan",
          data: {
            entries: update.entries
              .slice(0, planLimit)
              .map(({ content, status }, _index, { length }) => ({ text: shown(content, length, mask), status })),
          },
        });
        break;
      case "usage_update":
        tellUpdate({
          type: "agent.usage",
          data: { contextUsed: count(update.used), contextSize: count(update.size) },
        });
        break;
      default:
    }
  }

  return {
    take,
    tell,
    /** Settles once the harness may be heard on: a slow store slows it down, instead of letting updates pile up here. */
    async room(): Promise<void> {
      await nextTurn();
      await queue.room(waitingLimit);
    },
    /** From here on updates are news, and not a session's replayed history. */
    listen: () => void (listening = true),
    started: () => listening,
    anything: () => seen,
    toolCalls: () => toolCalls,
    toolRuns: () => [...tools.values()].some(runs),
    /** Whether an event could not be told. */
    failed: queue.failed,
    finalMessage: () => cutMiddle(last.trim(), lastLimit),
    /** @throws what telling an event threw */
    settled: () => (flush(), queue.settled()),
  };
}

/** Not every harness says `in_progress`. While the model still writes a tool's input, the tool does not run. */
function runs({ status, input }: ToolState): boolean {
  return status === "in_progress" || (status === "pending" && input !== undefined && input !== "{}");
}

const outputSchema = z.object({ terminal_output_delta: z.object({ data: z.string() }) });

/** What a command printed since the last update, from harnesses with the extension `terminal_output_delta`. */
function outputIn(extra: unknown): string | null {
  return outputSchema.safeParse(extra).data?.terminal_output_delta.data ?? null;
}

/** Shown once the tool has ended: an event for each piece would hold all those before it too. */
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
/** So much of a text is looked through for secrets: what is kept of it is far from where it was cut for that. */
const lookedThrough = 400_000;

/** The beginning of a text, masked before it is cut. */
function startOf(text: string, length: number, mask: Mask): string {
  return mask.text(text.slice(0, lookedThrough)).slice(0, length);
}

function titleOf(title: string | null | undefined, mask: Mask): string | null {
  return title == null ? null : startOf(title, titleLimit, mask);
}

/** A text that is one of so many in an event. */
function shown(text: string, among: number, mask: Mask): string {
  const room = Math.max(shortestCut, Math.floor(textsLimit / among));
  return cutMiddle(mask.text(cutMiddle(text, lookedThrough)), Math.min(outputLimit, room));
}

/** A count as an event holds it, whatever number was sent. */
function count(value: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value) || 0));
}

/** Far beyond what is kept of it in the end, the middle of a text is let go: it may be without end. */
function addedTo(text: string, more: string, mask: Mask): string {
  const longer = text + more;
  return longer.length < 4 * lastLimit ? longer : cutMiddle(mask.text(longer), 2 * lastLimit);
}

/** @param among how many texts the event may have in all */
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

/** One event for each, however long a text comes at once; none within a character. */
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
