import { PassThrough, type Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type Docker from "dockerode";
import type { Logger } from "../observability.ts";
import { callEngine, type Call, type Patience } from "./container-call.ts";
import { attach, messageOf, type Engine } from "./container-engine.ts";
import { createDemultiplexer } from "./container-frames.ts";
import { createGate, type Gate } from "./container-gate.ts";
import { isOf, proveContainer, type Inspected } from "./container-proof.ts";
import type { Upkeep } from "./container-upkeep.ts";
import { endProcess } from "./process-table.ts";
import type { Exceeded, SandboxedProcess, SandboxRequest } from "./sandbox.ts";
import { watchUsage } from "./watch.ts";

const lookEveryMs = 1_000;
/** Exit code of what SIGKILL ended. */
const killed = 137;
/** What is still on its way from a container that was ended has this long. */
const lastWordsMs = 500;

export interface ContainerRun {
  readonly docker: Docker;
  readonly request: SandboxRequest;
  readonly engine: () => Promise<Engine>;
  readonly options: (engine: Engine) => Docker.ContainerCreateOptions;
  /** False for a runtime with a kernel of its own. */
  readonly sameKernel: boolean;
  readonly upkeep: Upkeep;
  readonly patience: Patience;
  readonly logger: Logger | null;
}

/** One container from its making to its removal. */
export function runContainer(parts: ContainerRun): SandboxedProcess {
  const { request, upkeep, patience, docker } = parts;
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  stdin.on("error", () => undefined);
  const ending = new AbortController();
  const signal = AbortSignal.any([request.signal, ending.signal]);
  let exceeded: Exceeded | null = null;
  let life: ReturnType<typeof live> | null = null;
  const within = (toDo: string, limitMs: number): Call => ({ toDo, limitMs, until: { signal, endMs: patience.endMs } });

  async function run(): Promise<number | null> {
    const engine = await parts.engine();
    if (signal.aborted) return null;
    const [made, labels] = [parts.options(engine), await upkeep.labels()];
    const name = upkeep.hold();
    let container: Docker.Container;
    try {
      container = await callEngine(within("make a container", patience.workMs), (abortSignal) =>
        // Said apart: the client puts what it is given into the address too, and with it the command's environment.
        docker.createContainer({
          ...({ _query: { name }, _body: { ...made, Labels: labels } } as object),
          abortSignal,
        }),
      );
    } catch (error) {
      // It may be there all the same, or come to be.
      upkeep.removeLater(name);
      throw error;
    }
    life = live(parts, container, { stdin, stdout, stderr, signal, within });
    try {
      await life.start();
      const watch = watchContainer(parts, container, (by) => {
        exceeded ??= by;
        ending.abort();
      });
      const code = await life.end().finally(() => watch.stop());
      const state = await life.state();
      const guessed = !engine.tellsMemory && request.limits !== undefined && code === killed;
      if (state?.OOMKilled === true || guessed) exceeded ??= "memory";
      return code;
    } finally {
      await life.remove(name);
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
  { docker, request, sameKernel, upkeep, patience, logger }: ContainerRun,
  container: Docker.Container,
  streams: Streams,
) {
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
      attach(docker, container.id, abortSignal),
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
    const next = container.wait({ condition: "next-exit", abortSignal: over.signal }) as Promise<{
      StatusCode: number;
    }>;
    waited = next.then(({ StatusCode }) => StatusCode);
    waited.catch(() => undefined);
    await callEngine(within("start a container", patience.workMs), (abortSignal) => container.start({ abortSignal }));
    const [told] = await Promise.all([
      callEngine(within("show a container", patience.answerMs), (abortSignal) => container.inspect({ abortSignal })),
      callEngine(within("run a container's shell", patience.workMs), () => gate.ready()),
    ]);
    inspected = told;
    const wanted = { limits: request.limits, sameKernel };
    await callEngine(within("show what a container has", patience.answerMs), () => proveContainer(told, gate, wanted));
    gate.open();
    isOpen = true;
    stdin.pipe(attached as unknown as Duplex);
    early.pipe(stdout);
  }

  /** @returns the command's exit code; null where it was ended */
  async function end(): Promise<number | null> {
    const code = await Promise.race([waited, stopped]);
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
    logger?.warn({ container: container.id }, "the engine did not say that a container's output is over");
  }

  async function kill(): Promise<void> {
    try {
      await callEngine({ toDo: "end a container", limitMs: patience.answerMs }, (abortSignal) =>
        container.kill({ abortSignal }),
      );
    } catch (error) {
      const { statusCode } = error as { statusCode?: number };
      // It says that there is none that runs: then its end comes.
      hangs = statusCode === undefined;
      if (hangs) {
        logger?.warn({ err: error, container: container.id }, "the engine did not end a container");
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
    if (await isOf(pid, container.id)) endProcess(pid);
  }

  return {
    start,
    end,
    /** Whether the output ends by itself, once all of it was read. */
    endsOutput: () => isOpen,
    /** Null where the engine does not say any more. */
    async state(): Promise<{ readonly OOMKilled?: boolean } | null> {
      if (hangs) return null;
      try {
        const call: Call = { toDo: "show a container", limitMs: patience.answerMs };
        return (await callEngine(call, (abortSignal) => container.inspect({ abortSignal }))).State;
      } catch (error) {
        logger?.warn({ err: error, container: container.id }, "the engine did not say how a container ended");
        return null;
      }
    },
    async remove(name: string): Promise<void> {
      attached?.destroy();
      frames.destroy();
      if (hangs) upkeep.removeLater(name);
      else if (!(await upkeep.remove(name)) && !isGone) await killBySight();
      over.abort();
    },
  };
}

/** Disk is looked at from outside; that the bound of processes was run into only the engine tells. */
function watchContainer(
  { request: { limits, workspace, home }, patience }: ContainerRun,
  container: Docker.Container,
  onExceeded: (by: Exceeded) => void,
): { stop: () => void } {
  if (limits === undefined) return { stop: () => undefined };
  const disk = watchUsage({
    limits,
    folders: [...new Set([workspace, home])],
    pids: null,
    onExceeded: () => onExceeded("disk"),
  });
  let isLooking = false;
  async function look(): Promise<void> {
    const call: Call = { toDo: "show what a container uses", limitMs: patience.answerMs };
    const { pids_stats: pids, memory_stats: memory } = await callEngine(call, (abortSignal) =>
      container.stats({ stream: false, "one-shot": true, ...({ abortSignal } as object) }),
    );
    if ((pids?.current ?? 0) >= (limits?.processes ?? Number.POSITIVE_INFINITY)) onExceeded("processes");
    // The engine notes that something was ended for want of memory only at the end of all.
    const { failcnt } = memory as { failcnt?: number };
    if (failcnt === undefined || failcnt === 0) return;
    const { State } = await callEngine(call, (abortSignal) => container.inspect({ abortSignal }));
    if (State.OOMKilled) onExceeded("memory");
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
