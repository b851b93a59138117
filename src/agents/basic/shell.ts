import { spawn } from "node:child_process";
import { cutMiddle } from "../../domain/fields/text.ts";

const outputCharacters = 30_000;
/** Maximum output read of a command; later output is dropped. */
const bufferedCharacters = 1_000_000;

/** Result of a command. */
export interface ShellResult {
  /** Both outputs in order, shortened in the middle if long, and how the command ended. */
  readonly text: string;
  readonly ok: boolean;
}

/** Runs a command until its end, its time limit or the signal; then ends all processes of its group. */
export async function runShell(
  command: string,
  options: { cwd: string; environment: NodeJS.ProcessEnv; timeoutMs: number; signal: AbortSignal | undefined },
): Promise<ShellResult> {
  const { cwd, environment, timeoutMs, signal } = options;
  signal?.throwIfAborted();
  // No stdin: a command that asks for input reads the end of the file instead of waiting.
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
      // Background processes would keep the pipes open.
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
