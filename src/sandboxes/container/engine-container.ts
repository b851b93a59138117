import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "../../observability.ts";
import { endProcess } from "../process/process-table.ts";
import type { EngineApi, Inspected } from "./api.ts";
import { callEngine, untilStopped, type CallLimits } from "./call.ts";
import type { Reaper } from "./reaper.ts";
import { EngineError } from "./socket.ts";
import { isOf } from "./verify.ts";

/** The engine that has a container. */
export interface ContainerEngine {
  readonly api: EngineApi;
  readonly reaper: Reaper;
  readonly patience: CallLimits;
  readonly logger: Logger | null;
}

/** The container, as the engine and its reaper name it. */
export interface ContainerNames {
  readonly name: string;
  readonly id: string;
}

/** A container as its engine has it: what the engine is asked, and what its answers, or their absence, say. */
export class EngineContainer {
  readonly #engine: ContainerEngine;
  readonly #names: ContainerNames;
  /** The run's: calls that start the container end soon after it aborts. */
  readonly #signal: AbortSignal;
  /** Ends what waits for the container's exit. */
  readonly #over = new AbortController();
  /** The exit code, when the engine reports it by itself. */
  #exit: Promise<number> | null = null;
  /** The container's first process; 0 as long as it is not known. */
  #pid = 0;
  /** Whether the engine has reported the container's end. */
  #isGone = false;
  /** Whether the engine could not be reached for the container's state. */
  #isLost = false;
  /** Whether the engine did not answer a call to end the container: then it is asked for nothing more. */
  #hangs = false;

  constructor(engine: ContainerEngine, names: ContainerNames, signal: AbortSignal) {
    this.#engine = engine;
    this.#names = names;
    this.#signal = signal;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  attach(): Promise<Duplex> {
    const { api, patience } = this.#engine;
    return this.call("give a container's input and output", patience.answerMs, (signal) =>
      api.attach(this.#names.id, signal),
    );
  }

  async start(): Promise<void> {
    const { api, patience } = this.#engine;
    // Asked for before the start, so that a short run is not missed. No time limit: a command may run for long.
    this.#exit = api.nextExit(this.#names.id, this.#over.signal);
    this.#exit.catch(() => undefined);
    await this.call("start a container", patience.workMs, (signal) => api.start(this.#names.id, signal));
  }

  async inspect(): Promise<Inspected> {
    const { api, patience } = this.#engine;
    const description = await this.call("show a container", patience.answerMs, (signal) =>
      api.inspect(this.#names.id, signal),
    );
    this.#pid = description.State.Pid;
    return description;
  }

  /** Does with a time limit what takes the engine or the container, while the run goes on. @param action see `Call` */
  call<T>(action: string, limitMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return callEngine({ action, limitMs, until: untilStopped(this.#signal, this.#engine.patience) }, work);
  }

  /** Waits for the command's end, after `start`. @returns its exit code; null if the run was stopped before */
  async exit(outputEnded: Promise<void>): Promise<number | null> {
    const code = await Promise.race([this.#reportedExit(), this.#seenExit(outputEnded), aborted(this.#signal)]);
    if (code === undefined) return null;
    this.#isGone = true;
    return code;
  }

  #reportedExit(): Promise<number> {
    if (this.#exit === null) throw new Error("the container was not started");
    return this.#exit;
  }

  /**
   * After the end of the output, asks the engine how the command ended, if it has not said so: Podman polls whether a
   * container runs, and misses a short one.
   * @returns the exit code; never settles otherwise
   */
  async #seenExit(outputEnded: Promise<void>): Promise<number> {
    await outputEnded;
    while (!this.#over.signal.aborted) {
      await pause(this.#engine.patience.endMs, undefined, { ref: false });
      // The engine has reported the end in the meantime.
      if (this.#isGone) break;
      const { Running, ExitCode } = (await this.#askState()) ?? {};
      if (Running === false && ExitCode != null) return ExitCode;
    }
    return new Promise(() => undefined);
  }

  /** Null if the engine no longer answers. */
  async state(): Promise<Inspected["State"] | null> {
    return this.#hangs ? null : this.#askState();
  }

  async #askState(): Promise<Inspected["State"] | null> {
    const { api, patience, logger } = this.#engine;
    const { id } = this.#names;
    try {
      const call = { action: "show a container", limitMs: patience.answerMs };
      return (await callEngine(call, (signal) => api.inspect(id, signal))).State;
    } catch (error) {
      this.#isLost = !(error instanceof EngineError);
      // 404 after the end: this process has removed the container.
      if (!(this.#isGone && error instanceof EngineError && error.status === 404))
        logger?.warn({ err: error, container: id }, "the container engine did not report a container's exit code");
      return null;
    }
  }

  /** Ends a container that was started, and waits a moment for its end. */
  async kill(): Promise<void> {
    const { api, patience, logger } = this.#engine;
    const { id } = this.#names;
    try {
      const call = { action: "end a container", limitMs: patience.answerMs };
      await callEngine(call, (signal) => api.kill(id, signal));
    } catch (error) {
      // An EngineError says that no such container runs: its end will be reported.
      this.#hangs = !(error instanceof EngineError);
      if (this.#hangs) {
        logger?.warn({ err: error, container: id }, "the container engine did not kill a container");
        await this.#killBySight();
      }
    }
    // The engine reports the end of a container that it killed only after all else.
    const reported = this.#reportedExit().then(
      () => true,
      () => false,
    );
    this.#isGone = await Promise.race([reported, pause(patience.endMs, false, { ref: false })]);
  }

  /** Kills the container's first process, if this process can see it: the kernel then ends all in its namespace. */
  async #killBySight(): Promise<void> {
    if (await isOf(this.#pid, this.#names.id)) endProcess(this.#pid);
  }

  /** Removes the container, or leaves that to the reaper. */
  async remove(): Promise<void> {
    const { reaper } = this.#engine;
    if (this.#hangs) reaper.removeLater(this.#names);
    else if (!(await reaper.remove(this.#names)) && !this.#isGone) await this.#killBySight();
    this.#over.abort();
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}
