import { Worker } from "node:worker_threads";
import { compileCache } from "../../programs/compile-cache.ts";
import { programFile } from "../../programs/program-file.ts";
import type { FoundInContent } from "./content-scan.ts";

/** A part of a content, as sent to the thread. */
export interface ScanChunk {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

/** A content could not be searched: it took too long or too much memory. The message is the end of a sentence. */
export class NotReadError extends Error {
  override readonly name = "NotReadError";
}

/** Searches contents in a thread. */
export interface ContentScanner {
  /**
   * Searches one content for secrets.
   * @throws NotReadError if it takes too long or too much memory; later contents are searched all the same
   */
  scan(content: AsyncIterable<Uint8Array>): Promise<FoundInContent>;
  /** Ends the thread. */
  close(): Promise<void>;
}

const chunkLength = 1024 * 1024;
const memoryMb = 512;
/** Most time for one piece: an ordinary one takes 50 ms, the worst known about 3 s. */
const defaultChunkMs = 60_000;

const program = programFile(import.meta.url, "scan-thread");

/**
 * Makes a searcher of contents that an agent chose. It runs in a thread with bounds on time and memory, and is ended beyond
 * them. One content at a time.
 * @param secrets values of known secrets, reported by their index
 * @param chunkMs most time for each MiB, in ms
 */
export function createContentScanner(
  secrets: readonly string[],
  signal: AbortSignal,
  chunkMs = defaultChunkMs,
): ContentScanner {
  let thread: Worker | null = null;

  async function end(): Promise<void> {
    const ended = thread;
    thread = null;
    await ended?.terminate();
  }

  async function ask(chunk: ScanChunk): Promise<FoundInContent | null> {
    signal.throwIfAborted();
    thread ??= new Worker(program, {
      workerData: { secrets },
      env: compileCache(process.env),
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    });
    try {
      return await answerOf(thread, chunk, AbortSignal.any([signal, AbortSignal.timeout(chunkMs)]));
    } catch (error) {
      await end();
      signal.throwIfAborted();
      throw error;
    }
  }

  return {
    async scan(content) {
      let waiting: Uint8Array = new Uint8Array(0);
      for await (const bytes of chunksOf(content)) {
        if (waiting.length > 0) await ask({ bytes: waiting, isLast: false });
        waiting = bytes;
      }
      const found = await ask({ bytes: waiting, isLast: true });
      if (found === null) throw new Error("the thread gave no answer to the last chunk");
      return found;
    },
    close: end,
  };
}

/** @throws NotReadError */
function answerOf(thread: Worker, chunk: ScanChunk, signal: AbortSignal): Promise<FoundInContent | null> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      thread.off("message", onMessage).off("error", onError).off("exit", onExit);
      signal.removeEventListener("abort", onAbort);
    };
    const onMessage = (found: FoundInContent | null): void => {
      settle();
      resolve(found);
    };
    const onError = (error: Error & { code?: string }): void => {
      settle();
      reject(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? new NotReadError("it takes too much memory") : error);
    };
    const onExit = (): void => {
      settle();
      reject(new NotReadError("the thread that scanned it ended"));
    };
    const onAbort = (): void => {
      settle();
      reject(new NotReadError("it takes too long"));
    };
    thread.on("message", onMessage).on("error", onError).on("exit", onExit);
    signal.addEventListener("abort", onAbort, { once: true });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origins
    thread.postMessage(chunk);
  });
}

/** Joins the bytes into pieces of about one MiB: git sends them in many small ones. */
async function* chunksOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let gathered: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of content) {
    gathered.push(bytes);
    length += bytes.length;
    if (length < chunkLength) continue;
    yield Buffer.concat(gathered);
    gathered = [];
    length = 0;
  }
  if (length > 0) yield Buffer.concat(gathered);
}
