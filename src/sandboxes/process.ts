import { spawn, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import type { SandboxedProcess, SandboxRequest } from "./sandbox.ts";

/** Spawns a command in a process group of its own and ties it to the request's signal. */
export function startProcess(
  command: string,
  parameters: readonly string[],
  request: Pick<SandboxRequest, "environment" | "signal">,
  options: { readonly cwd: string; readonly descendants: boolean },
): SandboxedProcess {
  request.signal.throwIfAborted();
  const child = spawn(command, parameters, {
    cwd: options.cwd,
    env: { ...request.environment },
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  let ended = false;
  function kill(): void {
    if (!ended) killAll(child, options.descendants);
  }
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("error", (error) => {
      ended = true;
      child.stderr.destroy(error);
      resolve({ code: 127, signal: null });
    });
    child.once("exit", () => {
      // What it left behind in its group must not outlive it.
      killAll(child, options.descendants);
      ended = true;
    });
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  request.signal.addEventListener("abort", kill, { once: true });
  void exited.finally(() => request.signal.removeEventListener("abort", kill));
  // A program that died makes the next write fail; its exit tells of it.
  child.stdin.on("error", () => undefined);
  child.stderr.on("error", () => undefined);
  return { stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, exited, kill };
}

function killAll(child: ChildProcess, descendants: boolean): void {
  if (child.pid === undefined) return;
  const victims = descendants ? descendantsOf(child.pid) : [];
  for (const pid of [-child.pid, ...victims]) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

/** Every process below `root`, also those that made a group of their own; not those that a daemon gave away. */
function descendantsOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of listProcesses()) {
    const parent = parentOf(entry);
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), entry]);
  }
  const found: number[] = [];
  const left = [root];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const below = children.get(next) ?? [];
    found.push(...below);
    left.push(...below);
  }
  return found;
}

function listProcesses(): number[] {
  try {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    // No /proc on this system: the process group is all that is known.
    return [];
  }
}

function parentOf(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(fields.slice(fields.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return null;
  }
}
