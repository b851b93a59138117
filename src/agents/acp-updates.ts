import type * as acp from "@agentclientprotocol/sdk";
import { z } from "zod";
import type { NewEvent } from "../domain/event.ts";
import type { Mask } from "../domain/mask.ts";
import { cutMiddle, storable } from "../domain/text.ts";

/** Text arrives word by word; an event for each would be thousands. */
const gatherMs = 250;
const gatherLength = 4_000;
/** How much of a tool's output one event holds. */
const outputLimit = 20_000;
const contentLimit = 20;

type ToolState = Extract<NewEvent, { type: "agent.tool" }>["data"];
type TextType = "agent.message" | "agent.thought";

export type Updates = ReturnType<typeof createUpdates>;

/**
 * Turns the protocol's updates into events, told one after the other.
 * @param mask by which a secret is found before a text is cut, and one that comes in pieces is not told in pieces
 */
export function createUpdates(emit: (event: NewEvent) => Promise<void>, touch: () => void, mask: Mask) {
  const tools = new Map<string, ToolState>();
  /** What commands printed so far, where a harness tells it in pieces. */
  const outputs = new Map<string, string>();
  let listening = false;
  let part = 0;
  let gathered: { type: TextType; text: string } | null = null;
  let timer: NodeJS.Timeout | null = null;
  let last = "";
  let seen = false;
  let broken = false;
  let told: Promise<void> = Promise.resolve();

  function tell(event: NewEvent): Promise<void> {
    told = told.then(() => emit(event));
    // The failure is heard by whoever awaits `settled`.
    told.catch(() => (broken = true));
    return told;
  }

  /** @param keep characters at the end that wait for what follows */
  function flush(keep = 0): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered === null) return;
    const { type, text } = gathered;
    const ready = text.slice(0, text.length - keep);
    gathered = keep === 0 ? null : { type, text: text.slice(text.length - keep) };
    if (ready !== "") void tell({ type, data: { part: String(part), text: ready } });
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
    if (type === "agent.message") last += text;
    gathered = { type, text: (gathered?.text ?? "") + text };
    if (gathered.text.length > gatherLength) flushFinished();
    else timer ??= setTimeout(flushFinished, gatherMs);
  }

  function takeTool(update: acp.ToolCall | acp.ToolCallUpdate): void {
    const { toolCallId } = update;
    const before = tools.get(toolCallId);
    const piece = outputIn(update._meta);
    if (piece !== null)
      outputs.set(toolCallId, cutMiddle(mask.text(`${outputs.get(toolCallId) ?? ""}${piece}`), outputLimit));
    const next = withOutput(mergeTool(before, update, mask), outputs.get(toolCallId) ?? "");
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(next)) return;
    tools.set(toolCallId, next);
    endPart();
    last = "";
    void tell({ type: "agent.tool", data: next });
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
        void tell({
          type: "agent.plan",
          data: { entries: update.entries.map(({ content, status }) => ({ text: content, status })) },
        });
        break;
      case "usage_update":
        void tell({
          type: "agent.usage",
          data: { contextUsed: Math.round(update.used), contextSize: Math.round(update.size) },
        });
        break;
      default:
    }
    // A slow store slows the harness down, instead of letting updates pile up here.
    await told;
  }

  return {
    take,
    tell,
    /** From here on updates are news, and not a session's replayed history. */
    listen: () => void (listening = true),
    started: () => listening,
    anything: () => seen,
    toolCalls: () => tools.size,
    toolRuns: () => [...tools.values()].some(runs),
    /** Whether an event could not be told. */
    failed: () => broken,
    finalMessage: () => last.trim(),
    /** @throws what telling an event threw */
    settled: () => (flush(), told),
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
    update.rawInput === undefined ? before?.input : mask.text(JSON.stringify(update.rawInput)).slice(0, outputLimit);
  return {
    toolCallId: update.toolCallId,
    title: mask.text(update.title ?? before?.title ?? update.toolCallId).slice(0, 500),
    kind: update.kind ?? before?.kind ?? "other",
    status: update.status ?? before?.status ?? "pending",
    locations:
      update.locations?.slice(0, contentLimit).map(({ path, line }) => ({ path, ...(line != null && { line }) })) ??
      before?.locations ??
      [],
    content:
      update.content?.slice(0, contentLimit).flatMap((content) => contentOf(content, mask)) ?? before?.content ?? [],
    ...(input !== undefined && { input }),
  };
}

function contentOf(content: acp.ToolCallContent, mask: Mask): ToolState["content"] {
  const shown = (text: string): string => cutMiddle(mask.text(text), outputLimit);
  if (content.type === "content") return [{ type: "text", text: shown(textOf(content.content)) }];
  if (content.type === "diff") {
    const { path, oldText, newText } = content;
    return [
      {
        type: "diff",
        path,
        oldText: oldText == null ? null : shown(oldText),
        newText: shown(newText),
      },
    ];
  }
  return [];
}

function textOf(block: acp.ContentBlock): string {
  return block.type === "text" ? storable(block.text) : "";
}
