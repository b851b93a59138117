import type * as acp from "@agentclientprotocol/sdk";
import { z } from "zod";
import { cutMiddle } from "../../domain/fields/text.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { outputLimit, shown, startOf, textOf } from "./event-texts.ts";

/** Number of tool calls whose state is kept for later updates. */
const toolLimit = 1_000;
const contentLimit = 20;
/** Maximum characters of a path or an id. */
const nameLimit = 1_024;
const titleLimit = 500;

/** A tool call as an event tells of it. */
export type ToolState = Extract<NewEvent, { type: "agent.tool" }>["data"];
type ToolUpdate = acp.ToolCall | acp.ToolCallUpdate;

/** The tool calls of one turn, each as its updates so far make it. */
export class ToolCalls {
  readonly #mask: Mask;
  readonly #states = new Map<string, ToolState>();
  /** Output of commands so far, for harnesses that send it in chunks. */
  readonly #outputs = new Map<string, string>();
  #count = 0;

  /** @param mask finds secrets before a text is cut */
  constructor(mask: Mask) {
    this.#mask = mask;
  }

  /** How many there were. */
  get count(): number {
    return this.#count;
  }

  anyRuns(): boolean {
    return [...this.#states.values()].some(runs);
  }

  /** @returns the call as it is now; null if the update changes nothing that is shown */
  take(update: ToolUpdate): ToolState | null {
    const { toolCallId } = update;
    const before = this.#states.get(toolCallId);
    const next = withOutput(mergeTool(before, update, this.#mask), this.#outputOf(update));
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(next)) return null;
    if (before === undefined) this.#count += 1;
    this.#states.set(toolCallId, next);
    if (this.#states.size > toolLimit) this.#forgetOldest();
    return next;
  }

  /** All output of a call so far, with what the update adds. */
  #outputOf({ toolCallId, _meta }: ToolUpdate): string {
    const before = this.#outputs.get(toolCallId) ?? "";
    const piece = outputIn(_meta);
    if (piece === null) return before;
    const output = cutMiddle(this.#mask.text(`${before}${piece}`), outputLimit);
    this.#outputs.set(toolCallId, output);
    return output;
  }

  /** Drops a finished call if there is one: updates are more likely for running ones. */
  #forgetOldest(): void {
    const [oldest] = [...this.#states].find(([, tool]) => !runs(tool)) ?? [...this.#states][0] ?? [];
    if (oldest === undefined) return;
    this.#states.delete(oldest);
    this.#outputs.delete(oldest);
  }
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

function mergeTool(before: ToolState | undefined, update: ToolUpdate, mask: Mask): ToolState {
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

function titleOf(title: string | null | undefined, mask: Mask): string | null {
  return title == null ? null : startOf(title, titleLimit, mask);
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
