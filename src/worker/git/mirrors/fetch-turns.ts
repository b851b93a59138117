import { SessionError } from "../../../domain/errors/errors.ts";

/** What is fetched into a mirror, or done to it in the same way: once for all sessions that want it at the same time. */
export interface WantedFetch {
  /** Path of the mirror. */
  readonly mirror: string;
  /** What is fetched from where: of two fetches with one name, the second would bring what the first did. */
  readonly name: string;
  /** Whether the mirror has nothing yet, so that others would bring much the same, whatever their name. */
  readonly isFirst: boolean;
  /** Asks whether it may be read at all, before it is waited for. @throws if not */
  readonly mayRead: () => Promise<unknown>;
  /** Whether the mirror has it by now. */
  readonly isThere: () => Promise<boolean>;
  readonly fetch: (onProgress: (line: string) => void) => Promise<void>;
}

/** What is fetched into mirrors at this moment. */
export interface FetchTurns {
  /**
   * Fetches, unless another session's fetch brings it, which is waited for and whose progress is reported.
   * @throws what the fetch throws, or that of another session with the same name
   */
  take(wanted: WantedFetch, onProgress: (line: string) => void, signal: AbortSignal): Promise<void>;
}

/** A fetch under way. */
interface Running extends Pick<WantedFetch, "name" | "isFirst"> {
  readonly listeners: Set<(line: string) => void>;
  /** The error with which it ends, if that concerns others, too. */
  readonly ended: Promise<{ readonly failed: unknown } | null>;
}

/**
 * Has sessions that begin on one repository at the same time wait for one of them: each would fetch all of its history, and have it on the
 * disk. It is in memory: a data folder has one worker.
 */
export function createFetchTurns(): FetchTurns {
  const all = new Map<string, Set<Running>>();
  return {
    async take({ mirror, name, isFirst, mayRead, isThere, fetch }, onProgress, signal) {
      const before = () => [...(all.get(mirror) ?? [])].find((other) => other.name === name || other.isFirst);
      for (let other = before(); other !== undefined; other = before()) {
        const { listeners, ended } = other;
        await mayRead();
        listeners.add(onProgress);
        const outcome = await unlessAborted(ended, signal).finally(() => listeners.delete(onProgress));
        if (outcome !== null && other.name === name) throw outcome.failed;
        if (await isThere()) return;
      }
      const listeners = new Set([onProgress]);
      const here = all.get(mirror) ?? new Set();
      all.set(mirror, here);
      const fetching = fetch((line) => {
        for (const listener of listeners) listener(line);
      }).finally(() => {
        here.delete(running);
        if (here.size === 0) all.delete(mirror);
      });
      const ended = fetching.then(
        () => null,
        (error: unknown) => (signal.aborted || isOfCredentials(error) ? null : { failed: error }),
      );
      const running: Running = { name, isFirst, listeners, ended };
      here.add(running);
      await fetching;
    },
  };
}

/** @throws the signal's reason if it aborts first */
async function unlessAborted<T>(awaited: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([awaited, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Whether a remote refused a session's credentials: another's may be good. */
function isOfCredentials(error: unknown): boolean {
  return (
    error instanceof SessionError &&
    (error.code === "repository_access_denied" || error.code === "repository_not_found")
  );
}
