import { PassThrough, type Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { ConflictError, messageOf } from "../../domain/errors/errors.ts";
import type { SandboxFault } from "../../domain/errors/sandbox-lost.ts";
import type { Logger } from "../../observability.ts";
import { holdersOf, watched } from "../process/limited.ts";
import { endProcess } from "../process/process-table.ts";
import { watchUsage } from "../process/watch.ts";
import type { Exceeded, SandboxedProcess, SandboxRequest, SandboxUsage } from "../sandbox.ts";
import type { CreateContainerOptions, EngineApi, Inspected, Stats } from "./api.ts";
import { callEngine, type Call, type CallLimits } from "./call.ts";
import type { Engine } from "./engine.ts";
import { createDemultiplexer } from "./frames.ts";
import { createHandshake, type Handshake } from "./handshake.ts";
import type { Reaper } from "./reaper.ts";
import { EngineError } from "./socket.ts";
import { isOf, verifyContainer } from "./verify.ts";
import type { WorkLimiter } from "./work-limiter.ts";

const checkEveryMs = 1_000;
/** The first exit code of a command that a signal ended, and that of SIGKILL. */
const signalled = 129;
const killed = 137;
/** Time to receive the remaining output of a container that was ended. */
const lastWordsMs = 500;

/** What it takes to run one container. */
export interface ContainerRun {
  readonly api: EngineApi;
  readonly request: SandboxRequest;
  readonly engine: () => Promise<Engine>;
  readonly options: (engine: Engine) => CreateContainerOptions;
  /** False for a runtime with its own kernel. */
  readonly sameKernel: boolean;
  readonly reaper: Reaper;
  /** Limits concurrent creations and starts. */
  readonly starts: WorkLimiter;
  readonly patience: CallLimits;
  readonly logger: Logger | null;
}

/** Runs one container, from its creation to its removal. */
export function runContainer(parts: ContainerRun): SandboxedProcess {
  const { request, reaper, patience, api } = parts;
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  stdin.on("error", () => undefined);
  const ending = new AbortController();
  const signal = AbortSignal.any([request.signal, ending.signal]);
  let exceeded: Exceeded | null = null;
  let fault: SandboxFault | null = null;
  let life: ReturnType<typeof live> | null = null;
  let used: SandboxUsage | null = null;
  const within = (action: string, limitMs: number): Call => ({
    action,
    limitMs,
    until: { signal, endMs: patience.endMs },
  });

  /** @returns the container, which waits before its command; the caller removes it */
  async function make(engine: Engine): Promise<ReturnType<typeof live>> {
    const name = reaper.reserveName();
    try {
      const options = { ...parts.options(engine), Labels: await reaper.labels(name) };
      const id = await callEngine(within("make a container", patience.workMs), (abortSignal) =>
        api.create(name, options, abortSignal),
      );
      return live(parts, { name, id }, { stdin, stdout, stderr, signal, within });
    } catch (error) {
      // The engine may have created it all the same, or may create it later.
      reaper.removeLater({ name, id: null });
      throw error;
    }
  }

  async function run(): Promise<number | null> {
    const engine = await parts.engine();
    if (signal.aborted) return null;
    try {
      const started = await parts.starts.run(async () => {
        life = await make(engine);
        await life.start();
        return life;
      }, signal);
      const watch = watchContainer(parts, started.id, {
        onUsage: (usage) => (used = usage),
        onExceeded: (by) => {
          exceeded ??= by;
          ending.abort();
        },
      });
      const code = await started.end().finally(() => watch.stop());
      used = null;
      const state = await started.state();
      const guessed = !engine.reportsMemory && request.limits !== undefined && code === killed;
      if (state?.OOMKilled === true || guessed) exceeded ??= "memory";
      // An engine that stops ends its containers, and answers no call meanwhile.
      if (code !== null && code >= signalled && exceeded === null && started.isLost())
        fault = { why: `the container engine went away and ended the command (${code})`, passes: true };
      return code;
    } finally {
      await life?.remove();
    }
  }

  const exited = run()
    .catch((error: unknown) => {
      // The caller that aborted knows the reason.
      if (signal.aborted && error === signal.reason) return null;
      const why = messageOf(error);
      if (!signal.aborted) fault = { why, passes: mayPass(error) };
      stderr.write(`${why}\n`);
      return 127;
    })
    .then((code) => {
      if (life?.endsOutput() !== true) stdout.end();
      stderr.end();
      stdin.destroy();
      return { code, signal: code === null ? ("SIGKILL" as const) : null };
    });
  return {
    stdin,
    stdout,
    stderr,
    exited,
    kill: () => ending.abort(),
    exceeded: () => exceeded,
    fault: () => fault,
    usage: () => used,
  };
}

/** Whether what an engine could not do may work later: it was not there, hung or broke. What it or the check refused does not. */
export function mayPass(error: unknown): boolean {
  return error instanceof EngineError ? error.status >= 500 : !(error instanceof ConflictError);
}

interface Streams {
  readonly stdin: PassThrough;
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
  readonly signal: AbortSignal;
  readonly within: (action: string, limitMs: number) => Call;
}

/** A created container, until it is gone. */
function live(
  { api, request, sameKernel, reaper, patience, logger }: ContainerRun,
  container: { readonly name: string; readonly id: string },
  streams: Streams,
) {
  const { id } = container;
  const { stdin, stdout, stderr, signal, within } = streams;
  const over = new AbortController();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  if (signal.aborted) stop();
  else signal.addEventListener("abort", () => stop(), { once: true });
  // Output before the command runs is that of `handshake.sh`, and must not reach the reader of the command's output.
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
  /** Whether the engine could not be reached for the container's state. */
  let isLost = false;
  /** Whether the engine did not answer a call to end the container: then it is asked for nothing more. */
  let hangs = false;
  let isGone = false;

  async function connect(): Promise<Handshake> {
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
    return createHandshake(stream, early);
  }

  /** @throws if the container does not start as requested; then the command has not run */
  async function start(): Promise<void> {
    const handshake = await connect();
    // Asked for before the start, so that a short run is not missed. No time limit: a command may run for long.
    waited = api.nextExit(id, over.signal);
    waited.catch(() => undefined);
    await callEngine(within("start a container", patience.workMs), (abortSignal) => api.start(id, abortSignal));
    const [description] = await Promise.all([
      callEngine(within("show a container", patience.answerMs), (abortSignal) => api.inspect(id, abortSignal)),
      callEngine(within("run a container's shell", patience.workMs), () => handshake.ready()),
    ]);
    inspected = description;
    const expected = { limits: request.limits, sameKernel };
    await callEngine(within("show what a container has and reaches", patience.answerMs), () =>
      verifyContainer(description, handshake, expected),
    );
    handshake.proceed();
    isOpen = true;
    stdin.pipe(attached as unknown as Duplex);
    early.pipe(stdout);
  }

  /**
   * After the end of the output, asks the engine how the command ended, if it has not said so: Podman polls whether a
   * container runs, and misses a short one.
   * @returns the exit code; never settles otherwise
   */
  async function seenEnd(): Promise<number> {
    await drained;
    while (!over.signal.aborted) {
      await pause(patience.endMs, undefined, { ref: false });
      // The engine has reported the end in the meantime.
      if (isGone) break;
      const { Running, ExitCode } = (await showState()) ?? {};
      if (Running === false && ExitCode != null) return ExitCode;
    }
    return new Promise(() => undefined);
  }

  /** Null if the engine does not answer. */
  async function showState(): Promise<Inspected["State"] | null> {
    const call: Call = { action: "show a container", limitMs: patience.answerMs };
    try {
      return (await callEngine(call, (abortSignal) => api.inspect(id, abortSignal))).State;
    } catch (error) {
      isLost = !(error instanceof EngineError);
      // 404 after the end: this process has removed the container.
      if (!(isGone && error instanceof EngineError && error.status === 404))
        logger?.warn({ err: error, container: id }, "the container engine did not report a container's exit code");
      return null;
    }
  }

  /** @returns the command's exit code; null if it was ended */
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

  /** Waits until the reader has received all output: for a slow reader without limit, for a silent engine not. */
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
    logger?.warn({ container: id }, "the container engine did not end a container's output");
  }

  async function kill(): Promise<void> {
    try {
      await callEngine({ action: "end a container", limitMs: patience.answerMs }, (abortSignal) =>
        api.kill(id, abortSignal),
      );
    } catch (error) {
      // An EngineError says that no such container runs: its end will be reported.
      hangs = !(error instanceof EngineError);
      if (hangs) {
        logger?.warn({ err: error, container: id }, "the container engine did not kill a container");
        await killBySight();
      }
    }
    const left = pause(patience.endMs, undefined, { ref: false });
    // The engine reports the end of a container that it killed only after all else.
    isGone = (await Promise.race([waited.catch(() => undefined), left])) !== undefined;
  }

  /** Kills the container's first process, if this process can see it: the kernel then ends all in its namespace. */
  async function killBySight(): Promise<void> {
    const pid = inspected?.State.Pid ?? 0;
    if (await isOf(pid, id)) endProcess(pid);
  }

  return {
    id,
    start,
    end,
    /** Whether the output ends without intervention, once all of it was read. */
    endsOutput: () => isOpen,
    isLost: () => isLost,
    /** Null if the engine no longer answers. */
    async state(): Promise<Inspected["State"] | null> {
      return hangs ? null : showState();
    },
    async remove(): Promise<void> {
      attached?.destroy();
      frames.destroy();
      if (hangs) reaper.removeLater(container);
      else if (!(await reaper.remove(container)) && !isGone) await killBySight();
      over.abort();
    },
  };
}

/** What a container uses, as its engine says; null if it does not say. */
function usageIn({ memory_stats: memory, cpu_stats: cpu }: Stats): SandboxUsage | null {
  const time = cpu?.cpu_usage?.total_usage ?? null;
  if (memory?.usage == null || time === null) return null;
  const cached = memory.stats?.inactive_file ?? memory.stats?.total_inactive_file ?? 0;
  return { memoryBytes: Math.max(0, memory.usage - cached), cpuMs: time / 1_000_000 };
}

/** Measures the disk from outside; that the limit on processes was reached, only the engine reports. */
function watchContainer(
  { api, request, patience }: ContainerRun,
  id: string,
  {
    onExceeded,
    onUsage,
  }: { readonly onExceeded: (by: Exceeded) => void; readonly onUsage: (usage: SandboxUsage | null) => void },
): { stop: () => void } {
  const { limits, home } = request;
  if (limits === undefined) return { stop: () => undefined };
  const disk = watchUsage({
    limits,
    ...watched(request),
    pids: null,
    // By the session's user: which processes belong to a container, only the engine knows.
    holders: () => holdersOf(home, () => []),
    onExceeded: () => onExceeded("disk"),
  });
  let isLooking = false;
  async function check(): Promise<void> {
    const call: Call = { action: "show what a container uses", limitMs: patience.answerMs };
    const stats = await callEngine(call, (abortSignal) => api.stats(id, abortSignal));
    const { pids_stats: pids, memory_stats: memory } = stats;
    onUsage(usageIn(stats));
    if ((pids?.current ?? 0) >= (limits?.processes ?? Number.POSITIVE_INFINITY)) onExceeded("processes");
    // The engine reports that a process was ended for lack of memory only after the container's end.
    if ((memory?.failcnt ?? 0) === 0) return;
    const { State } = await callEngine(call, (abortSignal) => api.inspect(id, abortSignal));
    if (State.OOMKilled === true) onExceeded("memory");
  }
  const checking = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    // Ended in the meantime: its exit code reports that.
    check()
      .catch(() => undefined)
      .finally(() => (isLooking = false));
  }, checkEveryMs);
  return {
    stop() {
      clearInterval(checking);
      disk.stop();
    },
  };
}
