import { PassThrough } from "node:stream";
import { ConflictError, messageOf } from "../../domain/errors/errors.ts";
import type { SandboxFault } from "../../domain/errors/sandbox-lost.ts";
import type { Exceeded, SandboxedProcess, SandboxUsage } from "../sandbox.ts";
import type { CreateContainerOptions } from "./api.ts";
import type { CommandStreams } from "./attachment.ts";
import { callEngine, untilStopped, type Call } from "./call.ts";
import type { Engine } from "./engine.ts";
import { LiveContainer, type LiveContainerParts } from "./live-container.ts";
import { EngineError } from "./socket.ts";
import { watchContainer } from "./watch-container.ts";
import type { WorkLimiter } from "./work-limiter.ts";

/** The first exit code of a command that a signal ended, and that of SIGKILL. */
const signalled = 129;
const killed = 137;
/** That of a command that could not be started, as of a shell's. */
const notStarted = 127;

/** What it takes to run one container. */
export interface ContainerRun extends LiveContainerParts {
  readonly engine: () => Promise<Engine>;
  readonly options: (engine: Engine) => CreateContainerOptions;
  /** Limits concurrent creations and starts. */
  readonly starts: WorkLimiter;
}

/** How one container's run stands. */
interface Progress {
  readonly streams: CommandStreams;
  /** Aborts when the caller or `end` ends the run. */
  readonly signal: AbortSignal;
  readonly end: () => void;
  /** Null until the engine has made it. */
  container: LiveContainer | null;
  exceeded: Exceeded | null;
  fault: SandboxFault | null;
  used: SandboxUsage | null;
}

/** Runs one container, from its creation to its removal. */
export function runContainer(run: ContainerRun): SandboxedProcess {
  const progress = begin(run.request.signal);
  const { streams, end } = progress;
  const exited = runToExit(run, progress)
    .catch((error: unknown) => exitOfFailure(progress, error))
    .then((code) => {
      if (progress.container?.endsOutput !== true) streams.stdout.end();
      streams.stderr.end();
      streams.stdin.destroy();
      return { code, signal: code === null ? ("SIGKILL" as const) : null };
    });
  return {
    ...streams,
    exited,
    kill: end,
    exceeded: () => progress.exceeded,
    fault: () => progress.fault,
    usage: () => progress.used,
  };
}

function begin(stopped: AbortSignal): Progress {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
  streams.stdin.on("error", () => undefined);
  const ending = new AbortController();
  const signal = AbortSignal.any([stopped, ending.signal]);
  const end = (): void => ending.abort();
  return { streams, signal, end, container: null, exceeded: null, fault: null, used: null };
}

/** @returns the command's exit code; null if it was ended */
async function runToExit(run: ContainerRun, progress: Progress): Promise<number | null> {
  const engine = await run.engine();
  if (progress.signal.aborted) return null;
  try {
    const container = await run.starts.run(() => start(run, progress, engine), progress.signal);
    const code = await watchedEnd(run, progress, container);
    await explain(run, progress, engine, container, code);
    return code;
  } finally {
    await progress.container?.remove();
  }
}

async function start(run: ContainerRun, progress: Progress, engine: Engine): Promise<LiveContainer> {
  const container = await make(run, progress, engine);
  progress.container = container;
  await container.start();
  return container;
}

/** @returns the container, which waits before its command; the caller removes it */
async function make(run: ContainerRun, { streams, signal }: Progress, engine: Engine): Promise<LiveContainer> {
  const { api, reaper, patience } = run;
  const name = reaper.reserveName();
  try {
    const options = { ...run.options(engine), Labels: await reaper.labels(name) };
    const call: Call = {
      action: "make a container",
      limitMs: patience.workMs,
      until: untilStopped(signal, patience),
    };
    const id = await callEngine(call, (abortSignal) => api.create(name, options, abortSignal));
    return new LiveContainer(run, { name, id }, streams, signal);
  } catch (error) {
    // The engine may have created it all the same, or may create it later.
    reaper.removeLater({ name, id: null });
    throw error;
  }
}

/** Waits for the command's end, which comes at once if it exceeds its limits. */
async function watchedEnd(run: ContainerRun, progress: Progress, container: LiveContainer): Promise<number | null> {
  const watch = watchContainer(run, container.id, {
    onUsage: (usage) => (progress.used = usage),
    onExceeded: (by) => {
      progress.exceeded ??= by;
      progress.end();
    },
  });
  const code = await container.end().finally(() => watch.stop());
  progress.used = null;
  return code;
}

/** Finds out whether the command ended for lack of memory, or since its engine went away. */
async function explain(
  { request }: ContainerRun,
  progress: Progress,
  engine: Engine,
  container: LiveContainer,
  code: number | null,
): Promise<void> {
  const state = await container.state();
  const guessed = !engine.reportsMemory && request.limits !== undefined && code === killed;
  if (state?.OOMKilled === true || guessed) progress.exceeded ??= "memory";
  // An engine that stops ends its containers, and answers no call meanwhile.
  if (code !== null && code >= signalled && progress.exceeded === null && container.isLost)
    progress.fault = { why: `the container engine went away and ended the command (${code})`, passes: true };
}

/** @returns the exit code of a run that failed; null if it was ended */
function exitOfFailure(progress: Progress, error: unknown): number | null {
  const { signal, streams } = progress;
  // The caller that aborted knows the reason.
  if (signal.aborted && error === signal.reason) return null;
  const why = messageOf(error);
  if (!signal.aborted) progress.fault = { why, passes: mayPass(error) };
  streams.stderr.write(`${why}\n`);
  return notStarted;
}

/** Whether what an engine could not do may work later: it was not there, hung or broke. What it or the check refused does not. */
export function mayPass(error: unknown): boolean {
  return error instanceof EngineError ? error.status >= 500 : !(error instanceof ConflictError);
}
