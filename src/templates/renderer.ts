import type { ChildProcess } from "node:child_process";
import { forkProgram, type ForkedProgram } from "../programs/forked-program.ts";
import { programFile } from "../programs/program-file.ts";
import { renderHeapMib, renderWallMs, startWallMs } from "./limits.ts";
import { timeSignal, type TaskAnswer, type RendererMessage, type Task } from "./protocol.ts";

/** How a task ended. After the last four the process is gone. */
export type Outcome =
  | TaskAnswer
  /** It used up its processor time or its heap. */
  | { readonly exceeded: "time" | "memory" }
  /** The machine gave it hardly any processor time. */
  | { readonly starved: true }
  /** The process ended without a known reason; the text is for a log. */
  | { readonly died: string }
  /** The process could not be started; the text is for a log. */
  | { readonly unstartable: string };

/** A process that renders templates. It ends when this process ends, even if that is killed. */
export interface Renderer {
  readonly pid: number | undefined;
  /** Whether it can accept a task. */
  readonly alive: boolean;
  /** Runs one task at a time. Never rejects. */
  render(task: Task): Promise<Outcome>;
  /** Kills the process with its current task. Resolves when it is gone. */
  end(): Promise<void>;
}

/** Size of the space for young objects, in MiB. It is not part of the heap's limit; this keeps it small. */
const youngMib = 4;

/** Starts a process that renders templates. A task may be given before the process is ready. */
export function startRenderer(): Renderer {
  return new ForkedRenderer(
    forkProgram(programFile(import.meta.url, "renderer-program"), {
      // The process gets none of the server's environment and flags. Only the time zone is passed on, because dates are
      // printed in the server's zone.
      env: { TZ: Intl.DateTimeFormat().resolvedOptions().timeZone },
      // The optimizing compiler is off: its threads would use more of a template's processor time than they save.
      execArgv: [`--max-old-space-size=${renderHeapMib}`, `--max-semi-space-size=${youngMib}`, "--no-opt"],
    }),
  );
}

class ForkedRenderer implements Renderer {
  readonly #program: ForkedProgram;
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;
  #alive = true;
  #ready = false;
  #starved = false;
  #settle: ((outcome: Outcome) => void) | null = null;
  #task: Task | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(program: ForkedProgram) {
    const { child } = program;
    this.#program = program;
    this.#child = child;
    this.#gone = new Promise((resolve) => {
      child.once("error", (error) => this.#over({ unstartable: error.message }, resolve));
      // "close" comes after all of its output was read.
      child.once("close", (code, signal) => this.#over(this.#outcomeOf(code, signal), resolve));
    });
    child.on("message", (message) => this.#hear(message as RendererMessage));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#alive;
  }

  render(task: Task): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#task = task;
      this.#program.keepAlive(true);
      if (this.#ready) this.#begin();
      else this.#endAfter(startWallMs);
    });
  }

  async end(): Promise<void> {
    if (this.#alive) this.#program.keepAlive(true);
    this.#child.kill("SIGKILL");
    await this.#gone;
  }

  #hear(message: RendererMessage): void {
    if (message !== "ready") return this.#finish(message);
    this.#ready = true;
    if (this.#task !== null) this.#begin();
  }

  #begin(): void {
    this.#endAfter(renderWallMs);
    // If the process has gone meanwhile, its exit gives the outcome.
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
    // An idle process must not keep this one alive.
    this.#program.keepAlive(false);
    this.#settle?.(outcome);
    this.#settle = null;
    this.#task = null;
  }

  #over(outcome: Outcome, gone: () => void): void {
    this.#alive = false;
    this.#finish(outcome);
    gone();
  }

  #outcomeOf(code: number | null, signal: NodeJS.Signals | null): Outcome {
    if (this.#starved) return { starved: true };
    if (signal === timeSignal) return { exceeded: "time" };
    // V8 aborts or traps if its heap is full; Node.js does not turn this into an exception.
    if (signal === "SIGABRT" || signal === "SIGTRAP" || code === 134) return { exceeded: "memory" };
    const how = `ended with ${signal ?? code}: ${this.#program.printed()}`;
    return this.#ready ? { died: how } : { unstartable: how };
  }
}
