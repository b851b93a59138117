import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import { createMask } from "../../domain/masking/mask.ts";
import { connect, converse, failed } from "./conversation.ts";
import { createMessageStream } from "./message-stream.ts";
import { ProtocolViolation } from "./protocol-lines.ts";
import { crashFailure } from "./turn-failures.ts";
import type { FromThread, ToThread, TurnCall, TurnState, TurnTask, Verdict } from "./turn-messages.ts";
import { createUpdates } from "./updates.ts";

/**
 * Program of one turn's thread. It reads everything that a harness writes, so that this takes time and memory of one
 * session alone. The server gets events of a bounded size, and one verdict.
 */
function runThread(port: MessagePort, task: TurnTask): void {
  let signs = 0;
  const state = (): TurnState => ({ signs, started: updates.started(), toolRuns: updates.toolRuns() });
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

  const mask = createMask(task.secrets);
  const touch = (): void => void (signs += 1);
  const updates = createUpdates((event) => call({ kind: "emit", event }), touch, mask);
  const messages = createMessageStream({
    write: (bytes) => call({ kind: "write", bytes }),
    room: updates.room,
  });
  let sessionId = task.resume;
  const onSession = (id: string): Promise<void> => call({ kind: "session", id: (sessionId = id) });
  const conversation = { task, updates, mask, onSession };
  const connection = connect(messages.stream, conversation);
  const violation = Promise.withResolvers<Verdict>();
  void Promise.race([converse(connection, conversation), violation.promise]).then(
    (verdict) => say({ kind: "verdict", verdict, state: state() }),
    // The server knows why an event could not be stored.
    () => say({ kind: "verdict", verdict: { kind: "closed" }, state: state() }),
  );

  async function takeOutput(bytes: Uint8Array): Promise<void> {
    try {
      await messages.take(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) throw error;
      // Emit what came before the failure first.
      await updates.settled().catch(() => undefined);
      violation.resolve(failed(crashFailure(error)));
      return;
    }
    say({ kind: "taken", state: state() });
  }

  port.on("message", (message: ToThread) => {
    switch (message.kind) {
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
runThread(parentPort, workerData as TurnTask);
