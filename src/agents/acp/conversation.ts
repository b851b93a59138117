import * as acp from "@agentclientprotocol/sdk";
import { z } from "zod";
import type { SessionError } from "../../domain/errors/errors.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { ProtocolViolation } from "./protocol-lines.ts";
import { crashFailure, modelFailure } from "./turn-failures.ts";
import type { HarnessTask, TurnTask, ConversationResult } from "./turn-messages.ts";
import type { Updates } from "./updates.ts";

/** Maximum characters of a harness's session id. */
const longestSessionId = 1_000;
const longestStopReason = 100;

/** Messages of the Agent Client Protocol (https://agentclientprotocol.com), both ways. */
export type MessageStream = acp.Stream;

/** Dependencies of a conversation with the harness. */
export interface TurnConversation {
  readonly task: TurnTask;
  readonly updates: Updates;
  readonly mask: Mask;
  /** Stores the harness's session id before the turn starts, so that it can be resumed after a crash. */
  readonly onSession: (harnessSessionId: string) => Promise<void>;
}

/** Text of the message that a harness answers before its turn is known. */
const warmUpText = "Say that you are ready.";

/**
 * Starts the protocol; decides permissions as the task says, and passes on updates.
 * @param conversationOf the conversation of a session of the harness; null before its turn, and of a session that only warmed it up
 */
export function connect(
  stream: MessageStream,
  conversationOf: (harnessSessionId: string) => TurnConversation | null,
): acp.ClientConnection {
  return acp
    .client({ name: "offstage" })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      const conversation = conversationOf(params.sessionId);
      return conversation === null ? { outcome: { outcome: "cancelled" } } : decide(params, conversation);
    })
    .onNotification(acp.methods.client.session.update, ({ params }) =>
      conversationOf(params.sessionId)?.updates.take(params.update),
    )
    .connect(stream);
}

async function decide(
  params: acp.RequestPermissionRequest,
  { task, updates, mask }: TurnConversation,
): Promise<acp.RequestPermissionResponse> {
  const acceptedKinds = task.permission === "allow" ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
  const option = acceptedKinds
    .map((kind) => params.options.find((offered) => offered.kind === kind))
    .find((found) => found !== undefined);
  const decision = option !== undefined && task.permission === "allow" ? "allowed" : "denied";
  const title = params.toolCall.title ?? params.toolCall.toolCallId;
  const shortened = (text: string): string => mask.text(text).slice(0, 500);
  // Some harnesses report a call only by this request, once it is over.
  await updates.take({
    sessionUpdate: "tool_call_update",
    ...params.toolCall,
    status: decision === "allowed" ? "in_progress" : "failed",
  });
  await updates.tell({
    type: "agent.permission",
    data: { title: shortened(title), decision, option: shortened(option?.name ?? "none offered") },
  });
  return {
    outcome: option === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: option.optionId },
  };
}

/** Begins the protocol. @returns what the harness can do */
export async function initialize(
  { agent }: acp.ClientConnection,
  { extensions }: HarnessTask,
): Promise<acp.AgentCapabilities> {
  const initialized = await agent.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "offstage", version: "0" },
    // The harness reads, writes and runs inside its own sandbox, not through the client.
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      ...(extensions !== undefined && { _meta: extensions }),
    },
  });
  return initialized.agentCapabilities ?? {};
}

/**
 * Has the harness open a session in a folder and answer one message, so that its code is loaded and compiled.
 * @param onSession called with the session's id
 */
export async function warmUp(
  { agent }: acp.ClientConnection,
  workingDirectory: string,
  onSession: (harnessSessionId: string) => void,
): Promise<void> {
  const { session } = acp.methods.agent;
  const { sessionId } = await agent.request(session.new, { cwd: workingDirectory, mcpServers: [] });
  onSession(sessionId);
  await agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text: warmUpText }] });
}

/**
 * Resumes or opens the harness's session, sends the message, and waits until the turn ends.
 * @param initialized what the harness said that it can do
 * @returns the verdict; failures of the harness or the model are verdicts too
 * @throws errors of storing an event
 */
export async function converse(
  { agent }: acp.ClientConnection,
  initialized: Promise<acp.AgentCapabilities>,
  conversation: TurnConversation,
): Promise<ConversationResult> {
  try {
    return await takeTurn(agent, await initialized, conversation);
  } catch (error) {
    if (conversation.updates.failed()) throw error;
    // The harness refused a request of the protocol: its message is usually the model server's.
    if (error instanceof acp.RequestError)
      return failed(modelFailure(`${error.message} ${JSON.stringify(error.data ?? "")}`));
    if (error instanceof ProtocolViolation) return failed(crashFailure(error));
    return { kind: "closed" };
  }
}

/** The verdict of a failure that the user can understand. */
export function failed({ failure }: SessionError): ConversationResult {
  return { kind: "failed", failure };
}

async function takeTurn(
  agent: acp.ClientContext,
  capabilities: acp.AgentCapabilities,
  conversation: TurnConversation,
): Promise<ConversationResult> {
  const { task, updates } = conversation;
  const startedAt = performance.now();
  const { sessionId, configOptions, resumed } = await openSession(agent, task, capabilities);
  if (sessionId.length > longestSessionId)
    throw new ProtocolViolation(`a session id of more than ${longestSessionId} characters`);
  await conversation.onSession(sessionId);
  const isSet = await chooseOptions(agent, sessionId, configOptions, task);
  await updates.tell({ type: "agent.started", data: { provider: task.providerId, model: task.model, resumed } });
  if (!isSet) {
    const text = `The agent's program offers no reasoning level ${task.launch.reasoning ?? ""}: it works with its own.`;
    await updates.tell({ type: "notice", data: { level: "warning", text } });
  }
  updates.listen();
  const text = resumed || task.transcript === null ? task.message : `${task.transcript}\n\n${task.message}`;
  const prompt: acp.PromptRequest = { sessionId, prompt: [{ type: "text", text }] };
  const answer = await agent.request(acp.methods.agent.session.prompt, prompt);
  await updates.settled();
  const stopReason = answer.stopReason.slice(0, longestStopReason);
  for (const event of lastEvents(answer, { stopReason, durationMs: Math.round(performance.now() - startedAt) }))
    await updates.tell(event);
  const finalMessage = updates.finalMessage();
  return {
    kind: "ended",
    result: { stopReason, finalMessage },
    anything: updates.anything(),
    modelError: updates.toolCalls() === 0 ? errorAnswer(finalMessage) : null,
  };
}

/** Not yet a stable part of the protocol: read if a harness sends it. */
const tokens = z.number().int().min(0).optional();
const usageSchema = z.object({ usage: z.object({ inputTokens: tokens, outputTokens: tokens, totalTokens: tokens }) });

function lastEvents(
  answer: acp.PromptResponse,
  data: Extract<NewEvent, { type: "agent.turn" }>["data"],
): readonly NewEvent[] {
  const used = usageSchema.safeParse(answer).data;
  return [
    ...(used === undefined ? [] : [{ type: "agent.usage", data: used.usage } as const]),
    { type: "agent.turn", data },
  ];
}

/** Resumes the last turn's session if the harness still has it, else opens a new one. Replayed updates are ignored. */
async function openSession(agent: acp.ClientContext, task: TurnTask, capabilities: acp.AgentCapabilities) {
  // By stdio: the one kind that every agent must support.
  const mcpServers = (task.toolServers ?? []).map(({ args, env, ...server }) => ({
    ...server,
    args: [...args],
    env: [...env],
  }));
  const place: acp.NewSessionRequest = { cwd: task.workingDirectory, mcpServers };
  const { session } = acp.methods.agent;
  const takeUp =
    capabilities.sessionCapabilities?.resume != null
      ? session.resume
      : capabilities.loadSession === true
        ? session.load
        : null;
  if (task.resume !== null && takeUp !== null) {
    try {
      const taken = await agent.request(takeUp, { ...place, sessionId: task.resume });
      return { sessionId: task.resume, configOptions: taken?.configOptions ?? [], resumed: true };
    } catch (error) {
      // Lost with an old worker's disk, or never saved: send the transcript instead.
      if (!(error instanceof acp.RequestError)) throw error;
    }
  }
  const opened = await agent.request(acp.methods.agent.session.new, place);
  return { sessionId: opened.sessionId, configOptions: opened.configOptions ?? [], resumed: false };
}

/**
 * Sets the model and the level of reasoning, if the harness lists them.
 * @returns false if a level is wanted that the harness does not list
 */
async function chooseOptions(
  agent: acp.ClientContext,
  sessionId: string,
  options: readonly acp.SessionConfigOption[],
  { launch }: TurnTask,
): Promise<boolean> {
  const choose = (category: string, value: string | null): Promise<boolean> =>
    chooseOption(
      agent,
      sessionId,
      options.find((candidate) => candidate.category === category),
      value,
    );
  // A harness may accept models that it does not list: it was given this one at launch.
  await choose("model", launch.model);
  return choose("thought_level", launch.reasoning ?? null);
}

/** @returns whether the option has the value, or none is wanted */
async function chooseOption(
  agent: acp.ClientContext,
  sessionId: string,
  option: acp.SessionConfigOption | undefined,
  value: string | null,
): Promise<boolean> {
  if (value === null) return true;
  if (option === undefined || option.type !== "select") return false;
  if (option.currentValue === value) return true;
  const offered = option.options
    .flatMap((entry) => ("options" in entry ? entry.options : [entry]))
    .map((entry) => entry.value);
  if (!offered.includes(value)) return false;
  await agent.request(acp.methods.agent.session.setConfigOption, { sessionId, configId: option.id, value });
  return true;
}

/** Some harnesses append the model server's answer to the message: `{"error": {"message": …}}`. */
function errorAnswer(message: string): string | null {
  const json = message
    .split("\n")
    .findLast((line) => line.trim() !== "")
    ?.trim();
  if (json === undefined || !json.startsWith('{"error":') || !json.endsWith("}")) return null;
  try {
    return (
      z.object({ error: z.object({ message: z.string() }) }).safeParse(JSON.parse(json)).data?.error.message ?? null
    );
  } catch {
    // Not JSON.
    return null;
  }
}
