import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { SandboxedProcess, SandboxRequest } from "../sandbox.ts";
import { usageOf } from "./process-usage.ts";
import { carriersOf, markName, newMark } from "./marks.ts";
import { endProcess, familyOf, isSameProcess, knownProcess, type KnownProcess } from "./process-table.ts";

/** The kernel ends the processes of a namespace shortly after its first one. */
const checkAgainMs = 5;
const patienceMs = 2_000;

/** How `startProcess` starts a command. */
export interface StartOptions {
  readonly cwd: string;
  /**
   * The processes that are ended with the command in addition to its process group: nothing; all that can be found,
   * which reads every process of the machine; or all of its process namespace, whose first process the command reports
   * on the descriptor after `more`, as bubblewrap does (`--info-fd`).
   */
  readonly ends: "group" | "descendants" | "namespace";
  /** Contents of file descriptors 3, 4 and so on. */
  readonly more?: readonly Buffer[];
  /** Receives what the command writes to the descriptor after all others. */
  readonly onReport?: (chunk: Buffer) => void;
}

/** A started command, and what of it the server sees. */
export interface StartedProcess extends SandboxedProcess {
  /** Ids of all its processes that can be found. */
  readonly pids: () => readonly number[];
  /** The first process of its namespace, by which one can enter it; null before it is known, and after the command's end. */
  readonly first: () => number | null;
}

/**
 * Starts a command in its own process group, and ends it if the request's signal aborts.
 * @throws the signal's reason if it has already aborted
 */
export function startProcess(
  command: string,
  parameters: readonly string[],
  request: Pick<SandboxRequest, "environment" | "signal">,
  options: StartOptions,
): StartedProcess {
  request.signal.throwIfAborted();
  const mark = newMark();
  const { ends, more = [], onReport } = options;
  const child = spawn(command, parameters, {
    cwd: options.cwd,
    env: { ...request.environment, ...(ends !== "group" && { [markName]: mark }) },
    detached: true,
    stdio: [
      "pipe",
      "pipe",
      "pipe",
      ...more.map(() => "pipe" as const),
      ...(ends === "namespace" ? ["pipe" as const] : []),
      ...(onReport === undefined ? [] : ["pipe" as const]),
    ],
  });
  const descriptors = child.stdio as readonly unknown[];
  for (const [index, content] of more.entries()) {
    const descriptor = descriptors[3 + index];
    if (!(descriptor instanceof Writable)) continue;
    // A command that could not be started reads nothing; its exit reports that.
    descriptor.on("error", () => undefined);
    descriptor.end(content);
  }
  if (onReport !== undefined) receive(descriptors.at(-1), onReport);
  const first = ends === "namespace" ? firstProcess(descriptors[3 + more.length], child.pid) : () => null;
  // With the first process of a namespace the kernel ends all others (pid_namespaces(7)). A command that was ended
  // before it reported one may have made one.
  const descendants = (): number[] => {
    if (ends === "group") return [];
    const known = first();
    if (known === null) return carriersOf(mark);
    return known !== "ended" && isSameProcess(known) ? [known.pid] : [];
  };
  const endAll = (): void => {
    if (child.pid !== undefined) endProcess(-child.pid);
    for (const pid of descendants()) endProcess(pid);
  };
  let ended = false;
  const kill = (): void => {
    if (!ended) endAll();
  };
  const closed = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("error", (error) => {
      ended = true;
      child.stderr.destroy(error);
      resolve({ code: 127, signal: null });
    });
    child.once("exit", () => {
      // Background processes must not outlive the command.
      endAll();
      ended = true;
    });
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  const exited = closed.then(async (result) => {
    for (let waited = 0; waited < patienceMs; waited += checkAgainMs) {
      const left = descendants();
      if (left.length === 0) break;
      // A process may have started while the others were ended.
      for (const pid of left) endProcess(pid);
      await wait(checkAgainMs);
    }
    return result;
  });
  request.signal.addEventListener("abort", kill, { once: true });
  void exited.finally(() => request.signal.removeEventListener("abort", kill));
  // Writing to a program that has ended fails; its exit reports that.
  child.stdin.on("error", () => undefined);
  child.stderr.on("error", () => undefined);
  const { stdin, stdout, stderr } = child;
  const pids = (): number[] => {
    const family = child.pid === undefined || ended ? [] : familyOf(child.pid);
    return [...new Set([...family, ...descendants()])];
  };
  return {
    stdin,
    stdout,
    stderr,
    exited,
    kill,
    exceeded: () => null,
    fault: () => null,
    usage: () => usageOf(pids()),
    pids,
    first() {
      const known = first();
      return ended || known === null || known === "ended" ? null : known.pid;
    },
  };
}

/** Hands on what is written to a descriptor. */
function receive(descriptor: unknown, onReport: (chunk: Buffer) => void): void {
  if (!(descriptor instanceof Readable)) return;
  descriptor.on("error", () => undefined);
  descriptor.on("data", onReport);
}

/**
 * Reads which process bubblewrap says is the first of its namespace.
 * @param maker bubblewrap's own id
 * @returns what is known of it so far: "ended" if it had ended by then; null if nothing is known
 */
function firstProcess(descriptor: unknown, maker: number | undefined): () => KnownProcess | "ended" | null {
  let output = "";
  let known: KnownProcess | "ended" | null = null;
  if (descriptor instanceof Readable) {
    descriptor.on("error", () => undefined);
    descriptor.on("data", (chunk: Buffer) => {
      output += chunk.toString("latin1");
      const pid = /"child-pid": (\d+)/u.exec(output)?.[1];
      if (pid === undefined || known !== null) return;
      const found = knownProcess(Number(pid));
      if (found === null) known = "ended";
      // Another parent: bubblewrap has ended, and the id may be another process's by now.
      else if (found.parent === maker) known = found;
    });
  }
  return () => known;
}
