import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Understood } from "./bodies/check.ts";
import type { OperationName } from "./bodies/operations.ts";
import { RequestRefusedError } from "./refusal.ts";

interface Begin {
  readonly operation: OperationName;
  readonly pathModel: string | null;
  readonly permits: readonly string[];
}

/** What the thread is told; each request has an id. */
export type ToThread =
  | ({ readonly id: number; readonly kind: "begin" } & Begin)
  | { readonly id: number; readonly kind: "chunk"; readonly chunk: Uint8Array }
  | { readonly id: number; readonly kind: "end" | "drop" };

/** What it answers, once for each chunk and once at the end. */
export type FromThread =
  | { readonly id: number; readonly kind: "read" }
  | { readonly id: number; readonly kind: "understood"; readonly body: Understood }
  | { readonly id: number; readonly kind: "refused"; readonly status: number; readonly message: string };

/** The reading of one body. */
export interface Inspection {
  /**
   * Settles when the chunk is read, so that whoever sends one after another takes turns with others.
   * @throws RequestRefusedError
   */
  push(chunk: Uint8Array): Promise<void>;
  /** @throws RequestRefusedError */
  end(): Promise<Understood>;
  /** The rest is not sent. */
  drop(): void;
}

/** Reads bodies in a thread of its own, which all sessions of a worker share. */
export interface Inspector {
  begin(options: Begin): Inspection;
  /** Ends the thread; what it reads is refused. */
  close(): Promise<void>;
}

/** What it holds of a body is some kilobytes. */
const heapMegabytes = 64;

/** The thread starts with the first body, keeps no process alive, and is started again if it should ever end. */
export function createInspector(): Inspector {
  let thread: Worker | null = null;
  let lastId = 0;
  const waiting = new Map<number, PromiseWithResolvers<FromThread>>();

  function started(): Worker {
    if (thread !== null) return thread;
    // The source runs as it is, and is also built to JavaScript.
    const file = new URL(`inspection-thread${extname(import.meta.url)}`, import.meta.url);
    const fresh = new Worker(file, {
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
      env: {},
      execArgv: [],
    });
    fresh.unref();
    fresh.on("message", (message: FromThread) => {
      waiting.get(message.id)?.resolve(message);
      waiting.delete(message.id);
    });
    const ended = (): void => {
      if (thread === fresh) thread = null;
      for (const [id, { resolve }] of waiting)
        resolve({ id, kind: "refused", status: 503, message: "the body could not be read: send it again" });
      waiting.clear();
    };
    fresh.on("error", ended);
    fresh.on("exit", ended);
    thread = fresh;
    return fresh;
  }

  return {
    begin(options) {
      lastId += 1;
      const id = lastId;
      const ofThis = started();
      ofThis.postMessage({ id, kind: "begin", ...options } satisfies ToThread, []);
      async function ask(message: ToThread, transfer: ArrayBuffer[]): Promise<FromThread> {
        if (thread !== ofThis) throw new RequestRefusedError(503, "the body could not be read: send it again");
        const answer = Promise.withResolvers<FromThread>();
        waiting.set(id, answer);
        ofThis.postMessage(message, transfer);
        const told = await answer.promise;
        if (told.kind === "refused") throw new RequestRefusedError(told.status, told.message);
        return told;
      }
      return {
        async push(chunk) {
          // A copy: the bytes themselves are forwarded.
          const copy = Uint8Array.from(chunk);
          await ask({ id, kind: "chunk", chunk: copy }, [copy.buffer]);
        },
        async end() {
          const told = await ask({ id, kind: "end" }, []);
          if (told.kind !== "understood")
            throw new RequestRefusedError(503, "the body could not be read: send it again");
          return told.body;
        },
        drop: () => ofThis.postMessage({ id, kind: "drop" } satisfies ToThread, []),
      };
    },
    async close() {
      await thread?.terminate();
    },
  };
}
