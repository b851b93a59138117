import { PassThrough, type Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "../../observability.ts";
import { holdersOf, watched } from "../process/limited.ts";
import { endProcess } from "../process/process-table.ts";
import { watchUsage } from "../process/watch.ts";
import type { Exceeded, SandboxedProcess, SandboxRequest } from "../sandbox.ts";
import type { CreateOptions, EngineApi, Inspected } from "./api.ts";
import { callEngine, type Call, type Patience } from "./call.ts";
import { messageOf, type Engine } from "./engine.ts";
import { createDemultiplexer } from "./frames.ts";
import { createGate, type Gate } from "./gate.ts";
import { isOf, proveContainer } from "./proof.ts";
import { EngineError } from "./socket.ts";
import type { Turns } from "./turns.ts";
import type { Upkeep } from "./upkeep.ts";

const lookEveryMs = 1_000;
/** Exit code of what SIGKILL ended. */
const killed = 137;
/** What is still on its way from a container that was ended has this long. */
const lastWordsMs = 500;

export interface ContainerRun {
  readonly api: EngineApi;
  readonly request: SandboxRequest;
  readonly engine: () => Promise<Engine>;
  readonly options: (engine: Engine) => CreateOptions;
  /** False for a runtime with a kernel of its own. */
  readonly sameKernel: boolean;
  readonly upkeep: Upkeep;
  /** In which containers are made and started. */
  readonly starts: Turns;
  readonly patience: Patience;
  readonly logger: Logger | null;
}

/** One container from its making to its removal. */
export function runContainer(parts: ContainerRun): SandboxedProcess {
  const { request, upkeep, patience, api } = parts;
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  stdin.on("error", () => undefined);
  const ending = new AbortController();
  const signal = AbortSignal.any([request.signal, ending.signal]);
  let exceeded: Exceeded | null = null;
  let life: ReturnType<typeof live> | null = null;
  const within = (toDo: string, limitMs: number): Call => ({ toDo, limitMs, until: { signal, endMs: patience.endMs } });

  /** @returns the container, which waits at its gate; it is removed by whoever made it */
  async function make(engine: Engine): Promise<ReturnType<typeof live>> {
    const name = upkeep.hold();
    try {
      const options = { ...parts.options(engine), Labels: await upkeep.labels(name) };
      const id = await callEngine(within("make a container", patience.workMs), (abortSignal) =>
        api.create(name, options, abortSignal),
      );
      return live(parts, { name, id }, { stdin, stdout, stderr, signal, within });
    } catch (error) {
      // It may be there all the same, or come to be.
      upkeep.removeLater({ name, id: null });
      throw error;
    }
  }

  async function run(): Promise<number | null> {
    const engine = await parts.engine();
    if (signal.aborted) return null;
    try {
      const started = await parts.starts.take(async () => {
        life = await make(engine);
        await life.start();
        return life;
      }, signal);
      const watch = watchContainer(parts, started.id, (by) => {
        exceeded ??= by;
        ending.abort();
      });
      const code = await started.end().finally(() => watch.stop());
      const state = await started.state();
      const guessed = !engine.tellsMemory && request.limits !== undefined && code === killed;
      if (state?.OOMKilled === true || guessed) exceeded ??= "memory";
      return code;
    } finally {
      await life?.remove();
    }
  }

  const exited = run()
    .catch((error: unknown) => {
      // Whoever stopped it knows.
      if (signal.aborted && error === signal.reason) return null;
      stderr.write(`${messageOf(error)}\n`);
      return 127;
    })
    .then((code) => {
      if (life?.endsOutput() !== true) stdout.end();
      stderr.end();
      stdin.destroy();
      return { code, signal: code === null ? ("SIGKILL" as const) : null };
    });
  return { stdin, stdout, stderr, exited, kill: () => ending.abort(), exceeded: () => exceeded };
}

interface Streams {
  readonly stdin: PassThrough;
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
  readonly signal: AbortSignal;
  readonly within: (toDo: string, limitMs: number) => Call;
}

/** What becomes of a container that was made. */
function live(
  { api, request, sameKernel, upkeep, patience, logger }: ContainerRun,
  container: { readonly name: string; readonly id: string },
  streams: Streams,
) {
  const { id } = container;
  const { stdin, stdout, stderr, signal, within } = streams;
  const over = new AbortController();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  if (signal.aborted) stop();
  else signal.addEventListener("abort", () => stop(), { once: true });
  // What the container says before its command runs is the gate's, and not for who reads the command's output.
  const early = new PassThrough();
  const frames = createDemultiplexer({ stdout: early, stderr });
  const drained = new Promise<void>((resolve) => frames.once("close", resolve));
  frames.once("close", () => early.end());
  let attached: Duplex | null = null;
  let passed = 0;
  let waited: Promise<number> = Promise.reject(new Error("not started"));
  waited.catch(() => undefined);
  let inspected: Inspected | null = null;
  let isOpen = false;
  /** Whether the engine left a call unanswered that was to end it: then it is not asked to do more. */
  let hangs = false;
  let isGone = false;

  async function connect(): Promise<Gate> {
    const stream = await callEngine(within("give a container's input and output", patience.answerMs), (abortSignal) =>
      api.attach(id, abortSignal),
    );
    attached = stream;
    stream.on("error", () => undefined);
    stream.once("close", () => frames.end());
    stream.on("data", (chunk: Buffer) => (passed += chunk.length));
    frames.once("error", (error) => {
      stderr.write(`${error.message}\n`);
      stream.destroy();
    });
    stream.pipe(frames);
    return createGate(stream, early);
  }

  /** @throws where the container does not start as it was asked to; then nothing of the command was run */
  async function start(): Promise<void> {
    const gate = await connect();
    // Asked for before it starts, so that a short one is not missed. A command takes as long as it takes.
    waited = api.nextExit(id, over.signal);
    waited.catch(() => undefined);
    await callEngine(within("start a container", patience.workMs), (abortSignal) => api.start(id, abortSignal));
    const [told] = await Promise.all([
      callEngine(within("show a container", patience.answerMs), (abortSignal) => api.inspect(id, abortSignal)),
      callEngine(within("run a container's shell", patience.workMs), () => gate.ready()),
    ]);
    inspected = told;
    const wanted = { limits: request.limits, sameKernel };
    await callEngine(within("show what a container has and reaches", patience.answerMs), () =>
      proveContainer(told, gate, wanted),
    );
    gate.open();
    isOpen = true;
    stdin.pipe(attached as unknown as Duplex);
    early.pipe(stdout);
  }

  /**
   * Once the output is over, the engine is asked how the command ended, if it does not tell by itself: Podman looks only now and
   * then whether a container runs, and misses a short one.
   * @returns the exit code; never settles otherwise
   */
  async function seenEnd(): Promise<number> {
    await drained;
    while (!over.signal.aborted) {
      await pause(patience.endMs, undefined, { ref: false });
      // It told in the meantime.
      if (isGone) break;
      const { Running, ExitCode } = (await showState()) ?? {};
      if (Running === false && ExitCode != null) return ExitCode;
    }
    return new Promise(() => undefined);
  }

  /** Null if the engine does not say. */
  async function showState(): Promise<Inspected["State"] | null> {
    const call: Call = { toDo: "show a container", limitMs: patience.answerMs };
    try {
      return (await callEngine(call, (abortSignal) => api.inspect(id, abortSignal))).State;
    } catch (error) {
      // One that is gone was ended, and removed, by us.
      if (!(isGone && error instanceof EngineError && error.status === 404))
        logger?.warn({ err: error, container: id }, "the engine did not say how a container ended");
      return null;
    }
  }

  /** @returns the command's exit code; null where it was ended */
  async function end(): Promise<number | null> {
    const code = await Promise.race([waited, seenEnd(), stopped]);
    if (code === undefined) {
      await kill();
      await Promise.race([drained, pause(lastWordsMs, undefined, { ref: false })]);
    } else {
      isGone = true;
      await drain();
    }
    return code ?? null;
  }

  /** Until all that was said has gone on to who reads it; who does not read is waited for, an engine that says no more is not. */
  async function drain(): Promise<void> {
    for (let before = -1; before !== passed || early.writableNeedDrain || stderr.writableNeedDrain;) {
      before = passed;
      const timer = new AbortController();
      const isOver = await Promise.race([
        drained.then(() => true),
        pause(patience.endMs, false, { ref: false, signal: timer.signal }),
      ]);
      timer.abort();
      if (isOver) return;
    }
    logger?.warn({ container: id }, "the engine did not say that a container's output is over");
  }

  async function kill(): Promise<void> {
    try {
      await callEngine({ toDo: "end a container", limitMs: patience.answerMs }, (abortSignal) =>
        api.kill(id, abortSignal),
      );
    } catch (error) {
      // It says that there is none that runs: then its end comes.
      hangs = !(error instanceof EngineError);
      if (hangs) {
        logger?.warn({ err: error, container: id }, "the engine did not end a container");
        await killBySight();
      }
    }
    const left = pause(patience.endMs, undefined, { ref: false });
    // The engine tells of what it ended only at the end of all.
    isGone = (await Promise.race([waited.catch(() => undefined), left])) !== undefined;
  }

  /** Where its first process can be seen from here: with it the kernel ends all in its namespace. */
  async function killBySight(): Promise<void> {
    const pid = inspected?.State.Pid ?? 0;
    if (await isOf(pid, id)) endProcess(pid);
  }

  return {
    id,
    start,
    end,
    /** Whether the output ends by itself, once all of it was read. */
    endsOutput: () => isOpen,
    /** Null where the engine does not say any more. */
    async state(): Promise<Inspected["State"] | null> {
      return hangs ? null : showState();
    },
    async remove(): Promise<void> {
      attached?.destroy();
      frames.destroy();
      if (hangs) upkeep.removeLater(container);
      else if (!(await upkeep.remove(container)) && !isGone) await killBySight();
      over.abort();
    },
  };
}

/** Disk is looked at from outside; that the bound of processes was run into only the engine tells. */
function watchContainer(
  { api, request, patience }: ContainerRun,
  id: string,
  onExceeded: (by: Exceeded) => void,
): { stop: () => void } {
  const { limits, home } = request;
  if (limits === undefined) return { stop: () => undefined };
  const disk = watchUsage({
    limits,
    ...watched(request),
    pids: null,
    // By the session's own user: which processes are a container's is the engine's to know.
    holders: () => holdersOf(home, () => []),
    onExceeded: () => onExceeded("disk"),
  });
  let isLooking = false;
  async function look(): Promise<void> {
    const call: Call = { toDo: "show what a container uses", limitMs: patience.answerMs };
    const { pids_stats: pids, memory_stats: memory } = await callEngine(call, (abortSignal) =>
      api.stats(id, abortSignal),
    );
    if ((pids?.current ?? 0) >= (limits?.processes ?? Number.POSITIVE_INFINITY)) onExceeded("processes");
    // The engine notes that something was ended for want of memory only at the end of all.
    if ((memory?.failcnt ?? 0) === 0) return;
    const { State } = await callEngine(call, (abortSignal) => api.inspect(id, abortSignal));
    if (State.OOMKilled === true) onExceeded("memory");
  }
  const looking = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    // Gone in the meantime: its end tells.
    look()
      .catch(() => undefined)
      .finally(() => (isLooking = false));
  }, lookEveryMs);
  return {
    stop() {
      clearInterval(looking);
      disk.stop();
    },
  };
}
