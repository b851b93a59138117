import { fork, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { renderHeapMib, renderWallMs, startWallMs } from "./limits.ts";
import { timeSignal, type Answer, type Message, type Task } from "./protocol.ts";

/** How a task ended. The last four leave no process. */
export type Outcome =
  | Answer
  /** It used up its processor time or its heap. */
  | { readonly exceeded: "time" | "memory" }
  /** The machine gave it no processor time to speak of. */
  | { readonly starved: true }
  /** The process ended in a way that tells nothing; the words are for a log. */
  | { readonly died: string }
  /** The process never came up; the words are for a log. */
  | { readonly unstartable: string };

/** A process that renders templates. It ends by itself when this process ends, however that ends. */
export interface Renderer {
  readonly pid: number | undefined;
  /** Whether it can take a task. */
  readonly alive: boolean;
  /** Carries a task out; one at a time. Never rejects. */
  carryOut(task: Task): Promise<Outcome>;
  /** Ends the process, and the task under way. Settles when it is gone. */
  end(): Promise<void>;
}

/** Of what a process prints, so much is kept for the log. */
const keptOutput = 2_000;
/** Young objects live in a space of their own beside the heap's limit; this keeps it small, in MiB. */
const youngMib = 4;

/** Starts a process that renders templates; it is ready when its first task is. */
export function startRenderer(): Renderer {
  const extension = import.meta.filename.endsWith(".ts") ? "ts" : "js";
  const child = fork(join(import.meta.dirname, `renderer-program.${extension}`), [], {
    // Nothing of the server's environment or flags. Dates are printed in the zone in which the server is.
    env: { TZ: Intl.DateTimeFormat().resolvedOptions().timeZone },
    // Without the optimizing compiler, whose threads would use up more of a template's processor time than they save.
    execArgv: [`--max-old-space-size=${renderHeapMib}`, `--max-semi-space-size=${youngMib}`, "--no-opt"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let printed = "";
  child.stderr?.on("data", (chunk: Buffer) => (printed = (printed + chunk.toString()).slice(-keptOutput)));
  return new ForkedRenderer(child, () => printed);
}

class ForkedRenderer implements Renderer {
  readonly #child: ChildProcess;
  readonly #printed: () => string;
  readonly #gone: Promise<void>;
  #alive = true;
  #ready = false;
  #starved = false;
  #settle: ((outcome: Outcome) => void) | null = null;
  #task: Task | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(child: ChildProcess, printed: () => string) {
    this.#child = child;
    this.#printed = printed;
    this.#gone = new Promise((resolve) => {
      child.once("error", (error) => this.#over({ unstartable: error.message }, resolve));
      // After all that it said was read.
      child.once("close", (code, signal) => this.#over(this.#outcomeOf(code, signal), resolve));
    });
    child.on("message", (message) => this.#hear(message as Message));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#alive;
  }

  carryOut(task: Task): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#task = task;
      this.#hold(true);
      if (this.#ready) this.#begin();
      else this.#endAfter(startWallMs);
    });
  }

  async end(): Promise<void> {
    if (this.#alive) this.#hold(true);
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  #hear(message: Message): void {
    if (message !== "ready") return this.#finish(message);
    this.#ready = true;
    if (this.#task !== null) this.#begin();
  }

  #begin(): void {
    this.#endAfter(renderWallMs);
    // Where the process is gone by now, its end is what is told.
    if (this.#task !== null) this.#child.send(this.#task, () => {});
    this.#task = null;
  }

  #endAfter(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#starved = true;
      this.#child.kill("SIGKILL");
    }, ms);
  }

  #finish(outcome: Outcome): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#hold(false);
    this.#settle?.(outcome);
    this.#settle = null;
    this.#task = null;
  }

  #over(outcome: Outcome, gone: () => void): void {
    this.#alive = false;
    this.#finish(outcome);
    gone();
  }

  /** While it does nothing it keeps nobody from ending. */
  #hold(held: boolean): void {
    const { channel } = this.#child;
    const { stderr } = this.#child as { stderr: { ref?(): void; unref?(): void } | null };
    for (const each of [this.#child, channel, stderr]) {
      if (held) each?.ref?.();
      else each?.unref?.();
    }
  }

  #outcomeOf(code: number | null, signal: NodeJS.Signals | null): Outcome {
    if (this.#starved) return { starved: true };
    if (signal === timeSignal) return { exceeded: "time" };
    // V8 aborts, or traps, where its heap has no more room; Node turns neither into an exception.
    if (signal === "SIGABRT" || signal === "SIGTRAP" || code === 134) return { exceeded: "memory" };
    const how = `ended with ${signal ?? code}: ${this.#printed()}`;
    return this.#ready ? { died: how } : { unstartable: how };
  }
}
