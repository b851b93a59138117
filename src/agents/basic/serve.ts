import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { Readable, Writable } from "node:stream";
import {
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type AgentContext,
  type McpServer,
  type PromptRequest,
  type PromptResponse,
} from "@agentclientprotocol/sdk";
import type { LanguageModel } from "ai";
import { messageOf } from "../../domain/errors/errors.ts";
import { keyVariables, modelFrom, type EnvironmentVariables } from "./model.ts";
import { reasoningFrom, type ReasoningLevel } from "./reasoning.ts";
import { loadSession, saveSession, type StoredSession } from "./session-file.ts";
import type { ConnectedTools } from "./offered-tools.ts";
import { createTools } from "./tools.ts";
import { runBasicTurn } from "./turn.ts";

interface OpenSession {
  readonly stored: StoredSession;
  readonly cwd: string;
  readonly offered: ConnectedTools;
  /** Of the running turn. */
  turn: AbortController | null;
}

/**
 * Serves the basic agent over the Agent Client Protocol until stdin ends: a loop of the model, four tools and
 * those that the client offers.
 * @throws InvalidInputError if the environment names no usable model
 */
export async function serveBasicAgent(options: {
  readonly environment: EnvironmentVariables;
  readonly stdin: Readable;
  readonly stdout: Writable;
}): Promise<void> {
  const { environment } = options;
  const serving: Serving = {
    model: modelFrom(environment),
    reasoning: reasoningFrom(environment),
    home: environment["HOME"] ?? homedir(),
    toolEnvironment: Object.fromEntries(Object.entries(environment).filter(([name]) => !keyVariables.includes(name))),
    sessions: new Map(),
  };
  const { session } = methods.agent;
  const connection = agent({ name: "offstage" })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentCapabilities: { sessionCapabilities: { resume: {} } },
      agentInfo: { name: "offstage", title: "Offstage basic agent", version: "0.1.0" },
    }))
    .onRequest(session.new, async ({ params }) => {
      const id = randomUUID();
      const offered = await offeredTo(params);
      serving.sessions.set(id, { stored: { id, messages: [] }, cwd: params.cwd, offered, turn: null });
      return { sessionId: id };
    })
    .onRequest(session.resume, async ({ params }) => {
      const stored = await loadSession(serving.home, params.sessionId);
      if (stored === null) throw RequestError.resourceNotFound(params.sessionId);
      const offered = await offeredTo(params);
      serving.sessions.set(stored.id, { stored, cwd: params.cwd, offered, turn: null });
      return {};
    })
    .onRequest(session.prompt, ({ params, client }) => prompt(serving, params, client))
    .onNotification(session.cancel, ({ params }) => serving.sessions.get(params.sessionId)?.turn?.abort())
    .connect(
      ndJsonStream(
        Writable.toWeb(options.stdout) as WritableStream<Uint8Array>,
        Readable.toWeb(options.stdin) as ReadableStream<Uint8Array>,
      ),
    );
  await connection.closed;
  // The client has disconnected: end what still runs.
  for (const { turn } of serving.sessions.values()) turn?.abort();
  await Promise.all([...serving.sessions.values()].map(({ offered }) => offered.close()));
}

/** The tools whose programs a request names. @throws RequestError if one can't be started */
async function offeredTo({ mcpServers = [] }: { readonly mcpServers?: readonly McpServer[] }): Promise<ConnectedTools> {
  if (mcpServers.length === 0) return { tools: {}, close: () => Promise.resolve() };
  try {
    // Sessions of automations alone have some, and their client takes 30 to 70 ms to load.
    const { startOfferedTools } = await import("./offered-tools.ts");
    return await startOfferedTools(mcpServers);
  } catch (error) {
    throw RequestError.internalError(
      { source: "tools" },
      `the session's tools could not be started: ${messageOf(error)}`,
    );
  }
}

interface Serving {
  readonly model: LanguageModel;
  readonly reasoning: ReasoningLevel | null;
  readonly home: string;
  readonly toolEnvironment: NodeJS.ProcessEnv;
  readonly sessions: Map<string, OpenSession>;
}

async function prompt(serving: Serving, request: PromptRequest, client: AgentContext): Promise<PromptResponse> {
  const session = serving.sessions.get(request.sessionId);
  if (session === undefined) throw RequestError.resourceNotFound(request.sessionId);
  if (session.turn !== null) throw RequestError.invalidRequest(undefined, "this session has a turn already");
  const { cwd, stored, offered } = session;
  const text = request.prompt.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  const turn = (session.turn = new AbortController());
  try {
    return await runBasicTurn({
      model: serving.model,
      reasoning: serving.reasoning,
      tools: { ...offered.tools, ...createTools(cwd, serving.toolEnvironment) },
      cwd,
      sessionId: stored.id,
      messages: [...stored.messages, { role: "user", content: text }],
      client,
      signal: turn.signal,
      keep: async (messages) => {
        stored.messages = messages;
        await saveSession(serving.home, stored);
      },
    });
  } finally {
    session.turn = null;
  }
}
