import { spawn } from "node:child_process";
import { cutMiddle } from "../../domain/text.ts";

const outputCharacters = 30_000;
/** Read at most this much of a command that prints without end; what comes later is thrown away. */
const bufferedCharacters = 1_000_000;

export interface ShellResult {
  /** Both outputs as they came, both ends kept where it is long, and how it ended. */
  readonly text: string;
  readonly ok: boolean;
}

/** Runs a command to its end, its time or the signal; whatever it started in its process group ends with it. */
export async function runShell(
  command: string,
  options: { cwd: string; environment: NodeJS.ProcessEnv; timeoutMs: number; signal: AbortSignal | undefined },
): Promise<ShellResult> {
  const { cwd, environment, timeoutMs, signal } = options;
  signal?.throwIfAborted();
  // No input: a command that asks something gets the end of the file instead of waiting.
  const child = spawn("sh", ["-c", command], {
    cwd,
    env: environment,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const read = (chunk: string): void => {
    output += chunk;
    if (output.length > bufferedCharacters) output = cutMiddle(output, bufferedCharacters / 2);
  };
  child.stdout.setEncoding("utf8").on("data", read);
  child.stderr.setEncoding("utf8").on("data", read);
  const killGroup = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It is gone already.
    }
  };
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup();
  }, timeoutMs);
  signal?.addEventListener("abort", killGroup, { once: true });
  try {
    const ending = await new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(`could not be started: ${error.message}`));
      // What it left in the background would keep the pipes open.
      child.once("exit", killGroup);
      child.once("close", (code, killedBy) => resolve(code === null ? `killed by ${killedBy}` : `exit code ${code}`));
    });
    signal?.throwIfAborted();
    const end = timedOut ? `killed after ${timeoutMs / 1_000} s` : ending;
    return { text: `${cutMiddle(output, outputCharacters)}\n(${end})`.trimStart(), ok: end === "exit code 0" };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", killGroup);
  }
}
