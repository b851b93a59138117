import { Worker } from "node:worker_threads";
import { compileCache } from "../../domain/child-environment.ts";
import type { RunError } from "../../domain/errors.ts";
import { unreadableFailure } from "./turn-failures.ts";
import type { FromThread, ToThread, TurnCall, TurnState, TurnTask, Verdict } from "./turn-messages.ts";

/** More than the longest message, parsed and looked at, takes. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };
/** A thread that does not answer for so long is busy with one message. */
const silenceMs = 30_000;
const pingMs = 5_000;
/** The same extension as this file's: Node runs the source as well as what is built of it. */
const program = new URL(`turn-thread${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

/** What the thread asks of the server. Each settles once it is done. */
export interface TurnServices {
  readonly emit: (event: Extract<TurnCall, { kind: "emit" }>["event"]) => Promise<void>;
  readonly onSession: (id: string) => Promise<void>;
  /** Writes to the harness. */
  readonly write: (bytes: Uint8Array) => Promise<void>;
  readonly onState: (state: TurnState) => void;
}

export interface TurnDriver {
  /** Reads a piece of what the harness wrote. Settles once the next may come; if the turn was stopped, at once. */
  take(bytes: Uint8Array): Promise<void>;
  /** The harness writes no more. */
  endOutput(): void;
  /** Asks the harness to cancel. */
  cancel(): void;
  readonly verdict: Promise<Verdict>;
  /** Never resolves. @throws RunError agent_crashed if the thread died or was lost; what a service threw */
  readonly broken: Promise<never>;
  /** Ends the thread, whatever it is at; safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Reads one turn's protocol in a thread of its own: bytes go in as they come, and what comes out is small. It begins at once
 * to load, while the sandbox starts.
 */
export function startTurnDriver(task: TurnTask, services: TurnServices): TurnDriver {
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
  const verdict = Promise.withResolvers<Verdict>();
  const broken = Promise.withResolvers<never>();
  // Whichever comes first is heard: the other has nobody left.
  broken.promise.catch(() => undefined);
  let taken = (): void => undefined;
  let lastPong = performance.now();
  let isReady = false;
  let isStopped = false;
  const tell = (message: ToThread, transferred: readonly ArrayBuffer[] = []): void =>
    thread.postMessage(message, [...transferred]);

  async function serve(wanted: TurnCall): Promise<void> {
    if (wanted.kind === "emit") await services.emit(wanted.event);
    else if (wanted.kind === "session") await services.onSession(wanted.id);
    else await services.write(wanted.bytes);
  }

  thread.on("message", (message: FromThread) => {
    lastPong = performance.now();
    isReady = true;
    services.onState(message.state);
    switch (message.kind) {
      case "taken":
        taken();
        break;
      case "pong":
        break;
      case "verdict":
        verdict.resolve(message.verdict);
        break;
      case "call":
        serve(message.wanted).then(
          () => tell({ kind: "done", call: message.call, succeeded: true }),
          (error: unknown) => {
            broken.reject(error);
            tell({ kind: "done", call: message.call, succeeded: false });
          },
        );
    }
  });
  thread.on("error", (error: NodeJS.ErrnoException) => broken.reject(threadFailure(error)));
  thread.on("exit", () => broken.reject(unreadableFailure("are read no more: what reads them ended")));
  const pings = setInterval(() => {
    // How long it takes to load is the machine's affair.
    if (isReady && performance.now() - lastPong > silenceMs)
      broken.reject(unreadableFailure(`took longer than ${silenceMs / 1_000} s to read`));
    tell({ kind: "ping" });
  }, pingMs);
  pings.unref();

  return {
    async take(bytes) {
      if (isStopped) return;
      const done = new Promise<void>((resolve) => (taken = resolve));
      // A copy: what is read next may stand in the same memory.
      const copy = new Uint8Array(bytes);
      tell({ kind: "output", bytes: copy }, [copy.buffer]);
      await done;
    },
    endOutput: () => tell({ kind: "outputEnded" }),
    cancel: () => tell({ kind: "cancel" }),
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

function threadFailure(error: NodeJS.ErrnoException): RunError {
  return unreadableFailure(
    error.code === "ERR_WORKER_OUT_OF_MEMORY"
      ? `took more than ${resourceLimits.maxOldGenerationSizeMb} MiB of memory to read`
      : `could not be read (${error.message.slice(0, 500)})`,
  );
}
