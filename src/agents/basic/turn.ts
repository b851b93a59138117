import { readFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import type { AgentContext, PromptResponse, SessionUpdate, ToolKind } from "@agentclientprotocol/sdk";
import { methods, RequestError } from "@agentclientprotocol/sdk";
import {
  APICallError,
  isStepCount,
  RetryError,
  ToolLoopAgent,
  type LanguageModel,
  type ModelMessage,
  type TextStreamPart,
} from "ai";
import { messageOf } from "../../domain/errors/errors.ts";
import type { ReasoningLevel } from "./reasoning.ts";
import type { ToolOutcome, Tools } from "./tools.ts";

/** Ends a conversation that goes in circles. */
const maximumSteps = 300;
/** With pauses of 2, 4 and 8 s, or as the provider asks. */
const maximumRetries = 3;
const projectNotesCharacters = 20_000;

const kinds: Record<keyof Tools, ToolKind> = { read: "read", write: "edit", edit: "edit", shell: "execute" };

/** One turn of the basic agent. */
export interface TurnOptions {
  readonly model: LanguageModel;
  /** Null: the model's own. */
  readonly reasoning: ReasoningLevel | null;
  readonly tools: Tools;
  readonly cwd: string;
  readonly sessionId: string;
  /** The conversation; the new user message is last. */
  readonly messages: readonly ModelMessage[];
  readonly client: AgentContext;
  readonly signal: AbortSignal;
  /** Called before each request and at the end with the conversation so far. */
  readonly keep: (messages: ModelMessage[]) => Promise<void>;
}

/**
 * Lets the model work until it calls no more tools.
 * @throws RequestError with the provider's message if the model fails
 */
export async function runBasicTurn(options: TurnOptions): Promise<PromptResponse> {
  const { client, messages, sessionId, signal, keep } = options;
  const agent = new ToolLoopAgent({
    model: options.model,
    ...(options.reasoning !== null && { reasoning: options.reasoning }),
    instructions: await instructionsFor(options.cwd),
    tools: options.tools,
    // One of two concurrent edits of one file would be lost.
    toolCallConcurrency: 1,
    stopWhen: isStepCount(maximumSteps),
    maxRetries: maximumRetries,
    // The provider stores nothing, so that the conversation can be resumed from the agent's own file.
    providerOptions: { openai: { store: false } },
    prepareStep: async (step) => {
      await keep(step.messages);
      return {};
    },
  });
  const update = (sessionUpdate: SessionUpdate): Promise<void> =>
    client.notify(methods.client.session.update, { sessionId, update: sessionUpdate });
  let stopReason: PromptResponse["stopReason"] = "end_turn";
  let usage: Record<string, number | undefined> | null = null;
  try {
    const result = await agent.stream({ messages: [...messages], abortSignal: signal });
    for await (const part of result.stream) {
      if (part.type === "error") throw part.error;
      if (part.type === "abort") return { stopReason: "cancelled" };
      if (part.type === "finish") {
        const { inputTokens, outputTokens, totalTokens } = part.totalUsage;
        usage = { inputTokens, outputTokens, totalTokens };
        stopReason = stopReasonOf(part.finishReason);
      }
      const sessionUpdate = updateOf(part, options.cwd);
      if (sessionUpdate !== null) await update(sessionUpdate);
    }
    await keep([...messages, ...(await result.responseMessages)]);
  } catch (error) {
    if (signal.aborted) return { stopReason: "cancelled" };
    throw modelError(error);
  }
  // Usage is not yet a stable part of the protocol; clients that don't know it ignore it.
  return { stopReason, ...(usage !== null && { usage }) };
}

function stopReasonOf(finishReason: string): PromptResponse["stopReason"] {
  if (finishReason === "length") return "max_tokens";
  if (finishReason === "content-filter") return "refusal";
  // The model wanted to continue, and was stopped by the limit of steps.
  return finishReason === "tool-calls" ? "max_turn_requests" : "end_turn";
}

function updateOf(part: TextStreamPart<Tools>, cwd: string): SessionUpdate | null {
  switch (part.type) {
    case "text-delta":
      return { sessionUpdate: "agent_message_chunk", content: { type: "text", text: part.text } };
    case "reasoning-delta":
      return { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: part.text } };
    case "tool-call": {
      const input = (part.input ?? {}) as { path?: string; command?: string };
      return {
        sessionUpdate: "tool_call",
        toolCallId: part.toolCallId,
        title: input.command ?? (input.path === undefined ? part.toolName : relative(cwd, resolve(cwd, input.path))),
        kind: kinds[part.toolName as keyof Tools] ?? "other",
        status: "in_progress",
        rawInput: part.input,
        ...(input.path !== undefined && { locations: [{ path: resolve(cwd, input.path) }] }),
      };
    }
    case "tool-result": {
      const { text, diff } = part.output as ToolOutcome;
      const content = diff === undefined ? textContent(text) : { type: "diff" as const, ...diff };
      return {
        sessionUpdate: "tool_call_update",
        toolCallId: part.toolCallId,
        status: "completed",
        content: [content],
      };
    }
    case "tool-error": {
      const text = messageOf(part.error);
      return {
        sessionUpdate: "tool_call_update",
        toolCallId: part.toolCallId,
        status: "failed",
        content: [textContent(text)],
      };
    }
    default:
      return null;
  }
}

function textContent(text: string) {
  return { type: "content" as const, content: { type: "text" as const, text } };
}

function modelError(error: unknown): RequestError {
  const cause = RetryError.isInstance(error) ? error.lastError : error;
  const message = messageOf(cause);
  const status = APICallError.isInstance(cause) ? cause.statusCode : undefined;
  const text = status === undefined || message.includes(String(status)) ? message : `${message} (HTTP ${status})`;
  return new RequestError(-32_603, text, { source: "model", ...(status !== undefined && { status }) });
}

async function instructionsFor(cwd: string): Promise<string> {
  const notes = await readFile(join(cwd, "AGENTS.md"), "utf8").catch(() => "");
  const own = [
    "You are a careful software engineer who works alone on a task in a checked-out repository.",
    "Look before you change: read the files that matter, follow the conventions that you find, and change no more than the task needs.",
    "Check your work by running the project's own tests where it has them. When a command fails, read why and fix it.",
    "End with a short message that says what you changed and how you checked it.",
    `Working directory: ${cwd}`,
  ].join("\n");
  return notes === ""
    ? own
    : `${own}\n\nThe project's notes for agents (AGENTS.md):\n\n${notes.slice(0, projectNotesCharacters)}`;
}
