import { holdersOf, watched } from "../process/limited.ts";
import { watchUsage } from "../process/watch.ts";
import type { Exceeded, SandboxRequest, SandboxUsage } from "../sandbox.ts";
import type { EngineApi, Stats } from "./api.ts";
import { callEngine, type Call, type CallLimits } from "./call.ts";

const checkEveryMs = 1_000;

/** A container that runs, and where to ask for what it uses. */
interface WatchedContainer {
  readonly api: EngineApi;
  readonly request: SandboxRequest;
  readonly patience: CallLimits;
}

/** What is told of what a container uses. */
interface UsageListeners {
  readonly onExceeded: (by: Exceeded) => void;
  readonly onUsage: (usage: SandboxUsage | null) => void;
}

/** Measures the disk from outside; that the limit on processes was reached, only the engine reports. */
export function watchContainer(
  { api, request, patience }: WatchedContainer,
  id: string,
  { onExceeded, onUsage }: UsageListeners,
): { stop: () => void } {
  const { limits, home } = request;
  if (limits === undefined) return { stop: () => undefined };
  const disk = watchUsage({
    limits,
    ...watched(request),
    pids: null,
    // By the session's user: which processes belong to a container, only the engine knows.
    holders: () => holdersOf(home, () => []),
    onExceeded: () => onExceeded("disk"),
  });
  let isLooking = false;
  async function check(): Promise<void> {
    const call: Call = { action: "show what a container uses", limitMs: patience.answerMs };
    const stats = await callEngine(call, (abortSignal) => api.stats(id, abortSignal));
    const { pids_stats: pids, memory_stats: memory } = stats;
    onUsage(usageIn(stats));
    if ((pids?.current ?? 0) >= (limits?.processes ?? Number.POSITIVE_INFINITY)) onExceeded("processes");
    // The engine reports that a process was ended for lack of memory only after the container's end.
    if ((memory?.failcnt ?? 0) === 0) return;
    const { State } = await callEngine(call, (abortSignal) => api.inspect(id, abortSignal));
    if (State.OOMKilled === true) onExceeded("memory");
  }
  const checking = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    // Ended in the meantime: its exit code reports that.
    check()
      .catch(() => undefined)
      .finally(() => (isLooking = false));
  }, checkEveryMs);
  return {
    stop() {
      clearInterval(checking);
      disk.stop();
    },
  };
}

/** What a container uses, as its engine says; null if it does not say. */
function usageIn({ memory_stats: memory, cpu_stats: cpu }: Stats): SandboxUsage | null {
  const time = cpu?.cpu_usage?.total_usage ?? null;
  if (memory?.usage == null || time === null) return null;
  const cached = memory.stats?.inactive_file ?? memory.stats?.total_inactive_file ?? 0;
  return { memoryBytes: Math.max(0, memory.usage - cached), cpuMs: time / 1_000_000 };
}
