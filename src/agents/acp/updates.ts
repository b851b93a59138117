import { setImmediate as nextTurn } from "node:timers/promises";
import type * as acp from "@agentclientprotocol/sdk";
import { cutMiddle } from "../../domain/fields/text.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { createEventQueue } from "./event-queue.ts";
import { shown, textOf } from "./event-texts.ts";
import { TextParts, type TextType } from "./text-parts.ts";
import { ToolCalls } from "./tool-calls.ts";
import { TurnAllowance } from "./turn-allowance.ts";

const planLimit = 200;
/** Maximum characters of the agent's last message; a pull request's body has fewer. */
const lastLimit = 100_000;
/** Updates that may wait to be stored before the harness's output is no longer read. */
const waitingLimit = 50;
/** Maximum characters of one turn's events. */
const turnLimit = 256 * 1024 * 1024;

/** Converts the protocol's updates of one turn to events, and emits one after the other. */
export class Updates {
  readonly #touch: () => void;
  readonly #mask: Mask;
  readonly #queue: ReturnType<typeof createEventQueue>;
  readonly #allowance: TurnAllowance;
  readonly #texts: TextParts;
  readonly #tools: ToolCalls;
  #isListening = false;
  #hasContent = false;
  /** What the agent has said since its last tool call. */
  #lastMessage = "";

  /**
   * @param touch is called at each update
   * @param mask finds secrets before a text is cut, and keeps back text that may be the beginning of one
   */
  constructor(emit: (event: NewEvent) => Promise<void>, touch: () => void, mask: Mask, limit = turnLimit) {
    this.#touch = touch;
    this.#mask = mask;
    this.#queue = createEventQueue(emit);
    this.#allowance = new TurnAllowance((event) => void this.#queue.push(event), limit);
    this.#texts = new TextParts((event) => this.#allowance.push(event), mask);
    this.#tools = new ToolCalls(mask);
  }

  /** From now on updates are new, not a session's replayed history. */
  listen(): void {
    this.#isListening = true;
  }

  async take(update: acp.SessionUpdate): Promise<void> {
    this.#touch();
    if (!this.#isListening) return;
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
        this.#takeText("agent.message", textOf(update.content));
        break;
      case "agent_thought_chunk":
        this.#takeText("agent.thought", textOf(update.content));
        break;
      case "tool_call":
      case "tool_call_update":
        this.#takeTool(update);
        break;
      case "plan":
        this.#texts.end();
        this.#allowance.push(planOf(update, this.#mask));
        break;
      case "usage_update":
        this.#allowance.push(usageOf(update));
        break;
      default:
    }
  }

  #takeText(type: TextType, text: string): void {
    this.#hasContent = true;
    if (text === "") return;
    if (this.#texts.isOther(type)) this.#texts.end();
    if (this.#allowance.isSpent) return;
    if (type === "agent.message") this.#lastMessage = addedTo(this.#lastMessage, text, this.#mask);
    this.#texts.take(type, text);
  }

  #takeTool(update: acp.ToolCall | acp.ToolCallUpdate): void {
    this.#hasContent = true;
    if (this.#allowance.isSpent) return;
    const tool = this.#tools.take(update);
    if (tool === null) return;
    this.#texts.end();
    this.#lastMessage = "";
    this.#allowance.push({ type: "agent.tool", data: tool });
  }

  /** Emits an event of ours, whatever the harness has sent. @throws errors of emitting it, or one before it */
  tell(event: NewEvent): Promise<void> {
    return this.#queue.push(event);
  }

  /**
   * Settles when the harness may be read on: if the database is slow, the harness waits, so that updates don't pile
   * up here.
   */
  async room(): Promise<void> {
    await nextTurn();
    await this.#queue.hasRoom(waitingLimit);
  }

  /** @throws errors of `emit` */
  async settled(): Promise<void> {
    this.#texts.flush();
    await this.#queue.settled();
  }

  /** Whether updates are new by now. */
  started(): boolean {
    return this.#isListening;
  }

  /** Whether the agent said, thought or did anything. */
  anything(): boolean {
    return this.#hasContent;
  }

  toolCalls(): number {
    return this.#tools.count;
  }

  toolRuns(): boolean {
    return this.#tools.anyRuns();
  }

  /** Whether an event could not be stored. */
  failed(): boolean {
    return this.#queue.failed();
  }

  finalMessage(): string {
    return cutMiddle(this.#lastMessage.trim(), lastLimit);
  }
}

function planOf({ entries }: acp.Plan, mask: Mask): NewEvent {
  return {
    type: "agent.plan",
    data: {
      entries: entries
        .slice(0, planLimit)
        .map(({ content, status }, _index, { length }) => ({ text: shown(content, length, mask), status })),
    },
  };
}

function usageOf({ used, size }: acp.UsageUpdate): NewEvent {
  return { type: "agent.usage", data: { contextUsed: count(used), contextSize: count(size) } };
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
