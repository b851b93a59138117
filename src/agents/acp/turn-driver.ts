import { Worker } from "node:worker_threads";
import type { SessionError } from "../../domain/errors/errors.ts";
import { compileCache } from "../../programs/compile-cache.ts";
import { programFile } from "../../programs/program-file.ts";
import { unreadableFailure } from "./turn-failures.ts";
import type {
  FromThread,
  HarnessTask,
  ToThread,
  TurnCall,
  TurnState,
  TurnTask,
  ConversationResult,
} from "./turn-messages.ts";

/** More memory than the longest message takes when parsed and checked. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };
/** A thread that does not answer for this long is stuck in one message. */
const silenceMs = 30_000;
const pingMs = 5_000;
const program = programFile(import.meta.url, "turn-thread");

/** Calls of a turn from its thread to the server. Each settles when it is done. */
export interface TurnCallbacks {
  readonly emit: (event: Extract<TurnCall, { kind: "emit" }>["event"]) => Promise<void>;
  readonly onSession: (id: string) => Promise<void>;
}

/** The server's services for a thread from its start. */
export interface HarnessServices {
  /** Writes to the harness's stdin. Settles when it is done. */
  readonly write: (bytes: Uint8Array) => Promise<void>;
  readonly onState: (state: TurnState) => void;
}

/** The thread that reads a harness, as the server uses it. */
export interface TurnDriver {
  /**
   * Has the harness open a session in a folder and answer a message, of which nothing is reported.
   * @throws Error with the harness's words if it does not
   */
  warmUp(workingDirectory: string): Promise<void>;
  /** Gives the thread its turn; to be called once. */
  begin(task: TurnTask, services: TurnCallbacks): void;
  /** Passes on a chunk of the harness's output. Settles when the next may come, and at once if the turn was stopped. */
  take(bytes: Uint8Array): Promise<void>;
  /** The harness's output has ended. */
  endOutput(): void;
  /** Sends the harness a cancellation. */
  cancel(): void;
  readonly verdict: Promise<ConversationResult>;
  /** Never resolves. @throws SessionError agent_crashed if the thread died or got stuck; errors of a service */
  readonly broken: Promise<never>;
  /** Ends the thread at any point; may be called twice. */
  stop(): Promise<void>;
}

/**
 * Reads one harness's protocol in its own thread, whose messages to the server are small. The thread starts to load
 * at once, while the sandbox starts.
 */
export function startTurnDriver(task: HarnessTask, harness: HarnessServices): TurnDriver {
  const thread = new Worker(program, {
    workerData: task,
    resourceLimits,
    env: compileCache(process.env),
    argv: [],
    execArgv: [],
    stdin: false,
    stdout: false,
    stderr: false,
  });
  const verdict = Promise.withResolvers<ConversationResult>();
  const broken = Promise.withResolvers<never>();
  // Callers that await `broken` handle the error; there may be none.
  broken.promise.catch(() => undefined);
  let taken = (): void => undefined;
  let turn: TurnCallbacks | null = null;
  let warmed: PromiseWithResolvers<void> | null = null;
  let lastPong = performance.now();
  let isReady = false;
  let isStopped = false;
  const send = (message: ToThread, transferred: readonly ArrayBuffer[] = []): void =>
    thread.postMessage(message, [...transferred]);

  async function serve(request: TurnCall): Promise<void> {
    if (request.kind === "emit") await turn?.emit(request.event);
    else if (request.kind === "session") await turn?.onSession(request.id);
    else await harness.write(request.bytes);
  }

  thread.on("message", (message: FromThread) => {
    lastPong = performance.now();
    isReady = true;
    harness.onState(message.state);
    switch (message.kind) {
      case "taken":
        taken();
        break;
      case "pong":
        break;
      case "warmed":
        if (message.problem === null) warmed?.resolve();
        else warmed?.reject(new Error(message.problem));
        break;
      case "verdict":
        verdict.resolve(message.verdict);
        break;
      case "call":
        serve(message.request).then(
          () => send({ kind: "done", call: message.call, succeeded: true }),
          (error: unknown) => {
            broken.reject(error);
            send({ kind: "done", call: message.call, succeeded: false });
          },
        );
    }
  });
  thread.on("error", (error: NodeJS.ErrnoException) => broken.reject(threadFailure(error)));
  thread.on("exit", () =>
    broken.reject(unreadableFailure("could not be read any more: the thread that reads them ended")),
  );
  const pings = setInterval(() => {
    // The time to load depends on the machine, and has no limit.
    if (isReady && performance.now() - lastPong > silenceMs)
      broken.reject(unreadableFailure(`took longer than ${silenceMs / 1_000} s to read`));
    send({ kind: "ping" });
  }, pingMs);
  pings.unref();

  return {
    warmUp(workingDirectory) {
      warmed = Promise.withResolvers();
      send({ kind: "warmUp", workingDirectory });
      return warmed.promise;
    },
    begin(given, services) {
      turn = services;
      send({ kind: "turn", task: given });
    },
    async take(bytes) {
      if (isStopped) return;
      const done = new Promise<void>((resolve) => (taken = resolve));
      // A copy, because the next read may reuse the memory.
      const copy = new Uint8Array(bytes);
      send({ kind: "output", bytes: copy }, [copy.buffer]);
      await done;
    },
    endOutput: () => send({ kind: "outputEnded" }),
    cancel: () => send({ kind: "cancel" }),
    verdict: verdict.promise,
    broken: broken.promise,
    async stop() {
      isStopped = true;
      clearInterval(pings);
      taken();
      await thread.terminate();
    },
  };
}

function threadFailure(error: NodeJS.ErrnoException): SessionError {
  return unreadableFailure(
    error.code === "ERR_WORKER_OUT_OF_MEMORY"
      ? `took more than ${resourceLimits.maxOldGenerationSizeMb} MiB of memory to read`
      : `could not be read (${error.message.slice(0, 500)})`,
  );
}
