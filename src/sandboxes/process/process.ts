import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { Writable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { SandboxedProcess, SandboxRequest } from "../sandbox.ts";
import { usageOf } from "./process-usage.ts";
import { carriersOf, endProcess, familyOf } from "./process-table.ts";

/** Environment variable that every process of one start inherits, to find those that left its process group. */
const mark = "OFFSTAGE_PROCESS";
/** The kernel ends the processes of a namespace shortly after its first one. */
const checkAgainMs = 5;
const patienceMs = 2_000;

/** How `startProcess` starts a command. */
export interface StartOptions {
  readonly cwd: string;
  /** Whether processes that left the process group are ended too, which reads every process of the machine. */
  readonly endsDescendants: boolean;
  /** Contents of file descriptors 3, 4 and so on. */
  readonly more?: readonly Buffer[];
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
): SandboxedProcess & { readonly pids: () => readonly number[] } {
  request.signal.throwIfAborted();
  const id = randomUUID();
  const more = options.more ?? [];
  const child = spawn(command, parameters, {
    cwd: options.cwd,
    env: { ...request.environment, ...(options.endsDescendants && { [mark]: id }) },
    detached: true,
    stdio: ["pipe", "pipe", "pipe", ...more.map(() => "pipe" as const)],
  });
  for (const [index, content] of more.entries()) {
    const descriptor = (child.stdio as readonly unknown[])[3 + index];
    if (!(descriptor instanceof Writable)) continue;
    // A command that could not be started reads nothing; its exit reports that.
    descriptor.on("error", () => undefined);
    descriptor.end(content);
  }
  const descendants = (): number[] => (options.endsDescendants ? carriersOf(`${mark}=${id}`) : []);
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
  return { stdin, stdout, stderr, exited, kill, exceeded: () => null, usage: () => usageOf(pids()), pids };
}
