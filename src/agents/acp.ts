import { Writable, type Readable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { z } from "zod";
import { RunError } from "../domain/errors.ts";
import type { SandboxedProcess } from "../sandboxes/sandbox.ts";
import { boundedLines } from "./bounded-lines.ts";
import { createUpdates, type Updates } from "./acp-updates.ts";
import type { TurnRequest, TurnResult } from "./harness.ts";

/** A harness that was told to cancel gets this long to end by itself. */
const cancelGraceMs = 300;
/** A harness that does not even answer the first request is not coming. */
const startLimitMs = 60_000;
const stallLookMs = 250;
/** No message of the protocol is near to this. */
const longestLine = 32 * 1024 * 1024;

/**
 * One turn with any harness that speaks the Agent Client Protocol v1 (https://agentclientprotocol.com) on stdin and stdout:
 * starts it, resumes or opens its session, says the message, and tells each update as an event, until the turn ends.
 * No process of the harness is left when this settles.
 * @throws RunError agent_crashed, agent_stalled, agent_refused, model_error; the signal's reason when it aborts
 */
export async function runTurn(request: TurnRequest): Promise<TurnResult> {
  const ended = new AbortController();
  const signal = AbortSignal.any([request.signal, ended.signal]);
  const child = request.start(request.launch, ended.signal);
  const errors = readErrors(child);
  const updates = createUpdates(request.emit, errors.touch, request.mask);
  const endless = Promise.withResolvers<never>();
  const output = boundedLines(child.stdout, longestLine, () => endless.reject(endlessError()));
  const connection = connect({ stdin: child.stdin, stdout: output }, request, updates);
  let sessionId = request.resume;
  const onSession = (id: string): Promise<void> => request.onSession((sessionId = id));
  let result: TurnResult;
  try {
    const crash = crashed(child, errors);
    const work = converse(connection, { ...request, onSession }, updates).catch((error: unknown) => {
      // The harness refused a request of the protocol: what it says is most often what the model's server said.
      if (error instanceof acp.RequestError) throw modelFailure(`${error.message} ${JSON.stringify(error.data ?? "")}`);
      // A closed connection is told by the program's end, which says more.
      if (updates.failed()) throw error;
      return crash;
    });
    const watch = Promise.race([
      crash,
      endless.promise,
      stalled(request, updates, errors, signal),
      tooLong(request.limitMs, signal),
      aborted(request, connection, () => sessionId),
    ]);
    // Whichever comes later has nobody left to hear it.
    work.catch(() => undefined);
    watch.catch(() => undefined);
    result = await Promise.race([work, watch]);
    judge(result, updates, errors, request);
  } finally {
    ended.abort();
    child.kill();
    await child.exited;
    connection.close();
    await updates.settled();
  }
  // Known for sure only now: the kernel may have ended a command, and the agent gone on without it.
  const exceeded = child.exceeded();
  if (exceeded !== null) throw exceededError(exceeded);
  return result;
}

interface Errors {
  /** When there was the last sign of life. */
  readonly lastSign: () => number;
  readonly touch: () => void;
  /** The end of what the harness wrote to stderr. */
  readonly tail: () => string;
  /** The last error of the model that the harness logged, if any since the last text or tool. */
  readonly modelError: () => string | null;
}

function readErrors(child: SandboxedProcess): Errors {
  let said = "";
  let modelError: string | null = null;
  let lastSign = performance.now();
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    said = `${said}${chunk}`.slice(-20_000);
    modelError = modelErrorIn(chunk) ?? modelError;
  });
  return {
    lastSign: () => lastSign,
    touch: () => {
      lastSign = performance.now();
      modelError = null;
    },
    tail: () => said.trim().slice(-1_000),
    modelError: () => modelError,
  };
}

/** Harnesses log what the model's server answered; the protocol has no word for it. */
function modelErrorIn(chunk: string): string | null {
  const line = chunk
    .split("\n")
    .findLast((part) => /\b(?:AI_APICallError|APIError|API Error|status(?:Code)?["=: ]+[45]\d\d)\b/u.test(part));
  if (line === undefined) return null;
  const message = /"message":"((?:[^"\\]|\\.)*)"/u.exec(line)?.[1] ?? /AI_APICallError: (.*)$/u.exec(line)?.[1];
  return (message ?? line).slice(0, 500);
}

/** The library takes in all that it is given, and hands on many messages at once. */
async function* paced(stdout: Readable, updates: Updates): AsyncGenerator<Uint8Array> {
  for await (const chunk of stdout as AsyncIterable<Buffer>) {
    yield chunk;
    await updates.room();
  }
}

function connect(
  child: Pick<SandboxedProcess, "stdin" | "stdout">,
  request: TurnRequest,
  updates: Updates,
): acp.ClientConnection {
  const stream = acp.ndJsonStream(
    Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
    ReadableStream.from(paced(child.stdout, updates)),
  );
  return acp
    .client({ name: "offstage" })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      const wanted = request.permission === "allow" ? ["allow_once", "allow_always"] : ["reject_once", "reject_always"];
      const option = wanted
        .map((kind) => params.options.find((offered) => offered.kind === kind))
        .find((found) => found !== undefined);
      const decision = option !== undefined && request.permission === "allow" ? "allowed" : "denied";
      const title = params.toolCall.title ?? params.toolCall.toolCallId;
      const shortened = (text: string): string => request.mask.text(text).slice(0, 500);
      // Some harnesses tell of a call only by this, and then not before it is over.
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
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => updates.take(params.update))
    .connect(stream);
}

async function converse({ agent }: acp.ClientConnection, request: TurnRequest, updates: Updates): Promise<TurnResult> {
  const startedAt = performance.now();
  const initialized = await agent.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "offstage", version: "0" },
    // The harness reads, writes and runs inside its own sandbox, not through us.
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      ...(request.launch.extensions !== undefined && { _meta: request.launch.extensions }),
    },
  });
  const { sessionId, configOptions, resumed } = await openSession(agent, request, initialized.agentCapabilities ?? {});
  await request.onSession(sessionId);
  await chooseModel(agent, sessionId, configOptions, request);
  await updates.tell({ type: "agent.started", data: { provider: request.provider.id, model: request.model, resumed } });
  updates.listen();
  const text = resumed || request.transcript === null ? request.message : `${request.transcript}\n\n${request.message}`;
  const prompt: acp.PromptRequest = { sessionId, prompt: [{ type: "text", text }] };
  const { stopReason, ...rest } = await agent.request(acp.methods.agent.session.prompt, prompt);
  await updates.settled();
  const { data: usage } = usageSchema.safeParse(rest);
  if (usage !== undefined) await updates.tell({ type: "agent.usage", data: usage.usage });
  await updates.tell({
    type: "agent.turn",
    data: { stopReason, durationMs: Math.round(performance.now() - startedAt) },
  });
  return { stopReason, finalMessage: updates.finalMessage() };
}

/** No stable part of the protocol yet: taken where a harness sends it. */
const tokens = z.number().int().min(0).optional();
const usageSchema = z.object({ usage: z.object({ inputTokens: tokens, outputTokens: tokens, totalTokens: tokens }) });

/** The session of the turn before where the harness still has it, else a new one. What it replays is not news. */
async function openSession(agent: acp.ClientContext, request: TurnRequest, capabilities: acp.AgentCapabilities) {
  const place: acp.NewSessionRequest = { cwd: request.workingDirectory, mcpServers: [] };
  const { session } = acp.methods.agent;
  const takeUp =
    capabilities.sessionCapabilities?.resume != null
      ? session.resume
      : capabilities.loadSession === true
        ? session.load
        : null;
  if (request.resume !== null && takeUp !== null) {
    try {
      const taken = await agent.request(takeUp, { ...place, sessionId: request.resume });
      return { sessionId: request.resume, configOptions: taken?.configOptions ?? [], resumed: true };
    } catch (error) {
      // Gone with an old worker's disk, or never saved: the transcript stands in for it.
      if (!(error instanceof acp.RequestError)) throw error;
    }
  }
  const opened = await agent.request(acp.methods.agent.session.new, place);
  return { sessionId: opened.sessionId, configOptions: opened.configOptions ?? [], resumed: false };
}

async function chooseModel(
  agent: acp.ClientContext,
  sessionId: string,
  options: readonly acp.SessionConfigOption[],
  { launch }: TurnRequest,
): Promise<void> {
  const option = options.find((candidate) => candidate.category === "model");
  if (launch.model === null || option === undefined || option.type !== "select" || option.currentValue === launch.model)
    return;
  const offered = option.options
    .flatMap((entry) => ("options" in entry ? entry.options : [entry]))
    .map((entry) => entry.value);
  // A harness may take models that it does not list: those it was given at launch.
  if (!offered.includes(launch.model)) return;
  await agent.request(acp.methods.agent.session.setConfigOption, {
    sessionId,
    configId: option.id,
    value: launch.model,
  });
}

async function crashed(child: SandboxedProcess, errors: Errors): Promise<never> {
  const { code, signal } = await child.exited;
  const exceeded = child.exceeded();
  if (exceeded !== null) throw exceededError(exceeded);
  throw new RunError({
    code: "agent_crashed",
    reason: `The agent's program ended in the middle of its turn (${signal ?? `exit ${code}`})${errors.tail() === "" ? "." : `: ${errors.tail()}`}`,
    retryable: true,
    mend: "Retry the session; run `offstage doctor` on the server if it fails again.",
  });
}

function endlessError(): RunError {
  return new RunError({
    code: "agent_crashed",
    reason: `The agent's program wrote a line of more than ${longestLine / 1024 / 1024} MiB, which is no message of its protocol.`,
    retryable: true,
    mend: "Retry the session; run `offstage doctor` on the server if it fails again.",
  });
}

const usedTooMuch = {
  memory: "more memory",
  processes: "more processes and threads at once",
  disk: "more disk",
  files: "more files",
} as const;

function exceededError(exceeded: keyof typeof usedTooMuch): RunError {
  const used = usedTooMuch[exceeded];
  return new RunError({
    code: "resources_exhausted",
    reason: `The agent, or a command that it ran, used ${used} than its sandbox allows: everything in it was stopped.`,
    retryable: true,
    mend: "Ask for less at once, or raise OFFSTAGE_SANDBOX_MEMORY_MB, OFFSTAGE_SANDBOX_PROCESSES, OFFSTAGE_SANDBOX_DISK_MB or OFFSTAGE_SANDBOX_FILES.",
  });
}

/** Never resolves: rejects when there was no sign of life for too long. A tool that runs is one. */
async function stalled(request: TurnRequest, updates: Updates, errors: Errors, signal: AbortSignal): Promise<never> {
  const limit = (): number => (updates.started() ? request.stallMs : Math.max(request.stallMs, startLimitMs));
  return new Promise((_, reject) => {
    const look = setInterval(() => {
      const traffic = request.traffic?.();
      const now = performance.now();
      const quietMs = now - Math.max(errors.lastSign(), traffic?.lastActivity ?? 0);
      const failing = traffic?.lastError ?? errors.modelError();
      // The gateway was told when to try again: until then nothing is wrong.
      const waits = (traffic?.lastActivity ?? 0) > now;
      const badMs = now - Math.max(errors.lastSign(), traffic?.lastAnswer ?? 0);
      const goesOn = failing === null ? quietMs < limit() : waits || badMs < Math.min(limit(), modelErrorLimitMs);
      if (updates.toolRuns() || goesOn) return;
      clearInterval(look);
      reject(failing === null ? stallError(quietMs) : modelFailure(failing));
    }, stallLookMs);
    look.unref();
    signal.addEventListener("abort", () => clearInterval(look), { once: true });
  });
}

/** Never resolves: rejects when the turn took all of its time, whatever it does. */
function tooLong(limitMs: number, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => {
      reject(
        new RunError({
          code: "turn_too_long",
          reason: `The turn took longer than ${Math.round(limitMs / 60_000)} minutes.`,
          retryable: true,
          mend: "Ask for less at once, or raise OFFSTAGE_TURN_MINUTES; what was done so far is kept.",
        }),
      );
    }, limitMs);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  });
}

/** Some harnesses try a failing model for ever without a word: after so long with nothing but errors the turn is over. */
const modelErrorLimitMs = 30_000;

function stallError(quietMs: number): RunError {
  return new RunError({
    code: "agent_stalled",
    reason: `The agent made no progress for ${Math.round(quietMs / 1_000)} s: no message, no tool call, no running command.`,
    retryable: true,
    mend: "Retry the session; if the model is slow, raise OFFSTAGE_STALL_SECONDS.",
  });
}

function modelFailure(said: string): RunError {
  return new RunError({
    code: "model_error",
    reason: `The model answered only errors: ${said}`,
    retryable: true,
    mend: "Check the model's name, its key and its quota, then retry.",
  });
}

/** Never resolves: on the signal asks the harness to cancel, gives it a moment, then rejects with the signal's reason. */
function aborted(
  request: TurnRequest,
  connection: acp.ClientConnection,
  sessionOf: () => string | null,
): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => {
      const sessionId = sessionOf();
      if (sessionId !== null) {
        // The notification may find the harness gone already, which is as good.
        connection.agent.notify(acp.methods.agent.session.cancel, { sessionId }).catch(() => undefined);
      }
      setTimeout(() => reject(request.signal.reason as Error), cancelGraceMs);
    };
    if (request.signal.aborted) stop();
    else request.signal.addEventListener("abort", stop, { once: true });
  });
}

/** The protocol has no word for an error: a turn counts by what came of it. */
function judge({ stopReason, finalMessage }: TurnResult, updates: Updates, errors: Errors, request: TurnRequest): void {
  if (stopReason === "refusal") {
    throw new RunError({
      code: "agent_refused",
      reason: "The model refused to continue this task.",
      retryable: false,
      mend: "Rephrase the task, or choose another model.",
    });
  }
  const said = errors.modelError();
  const traffic = request.traffic?.();
  if (traffic?.answered === 0 && traffic.lastError !== null) throw modelFailure(traffic.lastError);
  const answered = updates.toolCalls() === 0 ? errorAnswer(finalMessage) : null;
  if (answered !== null) throw modelFailure(answered);
  if (!updates.anything())
    throw modelFailure(said ?? (errors.tail() || "the turn ended without a message or a tool call"));
}

/** Some harnesses pass the answer of a model's server on as the end of the message: `{"error": {"message": …}}`. */
function errorAnswer(message: string): string | null {
  const json = /^\{"error":.*\}$/su.exec(
    message
      .split("\n")
      .findLast((line) => line.trim() !== "")
      ?.trim() ?? "",
  )?.[0];
  if (json === undefined) return null;
  try {
    return (
      z.object({ error: z.object({ message: z.string() }) }).safeParse(JSON.parse(json)).data?.error.message ?? null
    );
  } catch {
    // Words that only look like it.
    return null;
  }
}
