import { fork, type ChildProcess, type ForkOptions } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A program of ours in a separate process, with a channel for messages. */
export interface ForkedProgram {
  readonly child: ChildProcess;
  /** The end of what it has printed on stderr, for a message. */
  printed(): string;
  /** @param held whether this process goes on for as long as the program's; not, to begin with */
  keepAlive(held: boolean): void;
}

/** Characters of the program's output that are kept. */
const keptOutput = 2_000;

/**
 * Starts a program of ours in a separate process.
 * @param file as `programFile` gives it
 * @param options the program's whole environment, and Node's flags for it
 */
export function forkProgram(
  file: URL,
  options: Required<Pick<ForkOptions, "env" | "execArgv">> & Pick<ForkOptions, "serialization">,
): ForkedProgram {
  const child = fork(fileURLToPath(file), [], { ...options, stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let printed = "";
  child.stderr?.on("data", (chunk: Buffer) => (printed = (printed + chunk.toString()).slice(-keptOutput)));
  function hold(held: boolean): void {
    const { stderr } = child as { stderr: { ref?(): void; unref?(): void } | null };
    for (const each of [child, child.channel, stderr]) {
      if (held) each?.ref?.();
      else each?.unref?.();
    }
  }
  hold(false);
  return { child, printed: () => printed, keepAlive: hold };
}
