import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { messageOf } from "../../domain/errors/errors.ts";
import { createMask } from "../../domain/masking/mask.ts";
import { connect, converse, failed, initialize, warmUp, type TurnConversation } from "./conversation.ts";
import { createMessageStream } from "./message-stream.ts";
import { ProtocolViolation } from "./protocol-lines.ts";
import { crashFailure } from "./turn-failures.ts";
import type {
  FromThread,
  HarnessTask,
  ToThread,
  TurnCall,
  TurnState,
  TurnTask,
  ConversationResult,
} from "./turn-messages.ts";
import { Updates } from "./updates.ts";

/** Characters of what a harness that can't be warmed up says. */
const longestProblem = 500;

/**
 * Program of the thread that reads one harness. It reads everything that the harness writes, so that this takes time and memory of
 * one session alone. The server gets events of a bounded size, and one verdict: the harness takes one turn.
 */
function runThread(port: MessagePort, harness: HarnessTask): void {
  let signs = 0;
  let turn: TurnConversation | null = null;
  /** The harness's session of the turn; null before there is one. */
  let sessionId: string | null = null;
  const warmUps = new Set<string>();
  const state = (): TurnState => ({
    signs,
    started: turn?.updates.started() ?? false,
    toolRuns: turn?.updates.toolRuns() ?? false,
  });
  const say = (message: FromThread, transferred: readonly ArrayBuffer[] = []): void =>
    port.postMessage(message, [...transferred]);
  const calls = new Map<number, PromiseWithResolvers<void>>();
  let lastCall = 0;
  const call = (request: TurnCall): Promise<void> => {
    const answer = Promise.withResolvers<void>();
    lastCall += 1;
    calls.set(lastCall, answer);
    say({ kind: "call", call: lastCall, request, state: state() });
    return answer.promise;
  };

  const messages = createMessageStream({
    write: (bytes) => call({ kind: "write", bytes }),
    room: async () => turn?.updates.room(),
  });
  const connection = connect(messages.stream, (id) => (warmUps.has(id) ? null : turn));
  const initialized = initialize(connection, harness);
  // The caller that needs it handles the error.
  initialized.catch(() => undefined);
  const violation = Promise.withResolvers<ConversationResult>();
  let isViolated = false;

  function takeTurn(task: TurnTask): void {
    const mask = createMask(task.secrets);
    const touch = (): void => void (signs += 1);
    const updates = new Updates((event) => call({ kind: "emit", event }), touch, mask);
    sessionId = task.resume;
    const onSession = (id: string): Promise<void> => call({ kind: "session", id: (sessionId = id) });
    const conversation = { task, updates, mask, onSession };
    turn = conversation;
    void Promise.race([converse(connection, initialized, conversation), violation.promise]).then(
      (verdict) => say({ kind: "verdict", verdict, state: state() }),
      // The server knows why an event could not be stored.
      () => say({ kind: "verdict", verdict: { kind: "closed" }, state: state() }),
    );
  }

  async function warm(workingDirectory: string): Promise<void> {
    const warming = initialized.then(() => warmUp(connection, workingDirectory, (id) => void warmUps.add(id)));
    const problem = await Promise.race([warming, violation.promise]).then(
      () => (isViolated ? "it broke the protocol" : null),
      (error: unknown) => messageOf(error).slice(0, longestProblem),
    );
    say({ kind: "warmed", problem, state: state() });
  }

  async function takeOutput(bytes: Uint8Array): Promise<void> {
    try {
      await messages.take(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) throw error;
      // Emit what came before the failure first.
      await turn?.updates.settled().catch(() => undefined);
      isViolated = true;
      violation.resolve(failed(crashFailure(error)));
      return;
    }
    say({ kind: "taken", state: state() });
  }

  port.on("message", (message: ToThread) => {
    switch (message.kind) {
      case "warmUp":
        void warm(message.workingDirectory);
        break;
      case "turn":
        takeTurn(message.task);
        break;
      case "output":
        void takeOutput(message.bytes);
        break;
      case "outputEnded":
        messages.end();
        break;
      case "cancel":
        // The harness may have ended already.
        if (sessionId !== null) connection.agent.notify("session/cancel", { sessionId }).catch(() => undefined);
        break;
      case "ping":
        say({ kind: "pong", state: state() });
        break;
      case "done": {
        const answer = calls.get(message.call);
        calls.delete(message.call);
        if (message.succeeded) answer?.resolve();
        else answer?.reject(new Error("the server could not do what the turn requested"));
      }
    }
  });
}

// The library logs invalid messages on the console, which would be the server's log.
const quiet = (): void => undefined;
Object.assign(console, { log: quiet, info: quiet, debug: quiet, warn: quiet, error: quiet });
if (parentPort === null) throw new Error("turn-program is started by turn-thread.ts, in a thread");
runThread(parentPort, workerData as HarnessTask);
