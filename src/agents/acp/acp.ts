import { messageOf, SessionError, type Failure } from "../../domain/errors/errors.ts";
import { sandboxLost } from "../../domain/errors/sandbox-lost.ts";
import type { SandboxedProcess } from "../../sandboxes/sandbox.ts";
import type { TurnRequest, TurnResult } from "../harness.ts";
import { forwardOutput } from "./forward-output.ts";
import { createHarnessActivity, type HarnessActivity } from "./harness-activity.ts";
import { startTurnDriver, type TurnDriver } from "./turn-driver.ts";
import {
  exceededFailure,
  exitFailure,
  modelFailure,
  refusalFailure,
  silenceFailure,
  stallFailure,
  tooLongFailure,
  warmUpFailure,
} from "./turn-failures.ts";
import type { TurnTask, ConversationResult } from "./turn-messages.ts";

/** Time for a harness to end after a cancellation. */
const cancelGraceMs = 300;
/** Time for a harness to answer the first request. */
const startLimitMs = 60_000;
const stallCheckMs = 250;
/** Some harnesses retry a failing model for ever, silently: after this long with nothing but errors the turn ends. */
const modelErrorLimitMs = 30_000;

/** How to start a harness: its launch, and what starts it. */
export type HarnessStart = Pick<TurnRequest, "launch" | "start">;

/** A harness that runs, with the thread that reads it. It takes one turn. */
export interface RunningHarness {
  /**
   * Has the harness open a session in a folder and answer one message, of which nothing is reported, so that its code is loaded and
   * compiled before its turn.
   * @throws SessionError agent_crashed with why it did not
   */
  warmUp(workingDirectory: string): Promise<void>;
  /**
   * Takes the harness's one turn: see `runTurn`. When this settles, no process of the harness and no thread is left.
   * @param startLimitMs time to open its session, if not the usual one: a harness that was ready answers soon
   */
  takeTurn(request: Omit<TurnRequest, "start">, startLimitMs?: number): Promise<TurnResult>;
  /** Whether the turn's session is open, so that the model may have been asked. */
  hasBegun(): boolean;
  /** Settles when its processes have ended. */
  readonly exited: Promise<unknown>;
  /** Ends it, at any point; may be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts a harness that speaks the Agent Client Protocol v1 (https://agentclientprotocol.com) on stdin and stdout, and
 * begins the protocol. A separate thread reads its output (turn-thread.ts); this module handles its process, its time
 * limits and its end.
 * @throws what `start` throws
 */
export function startHarness({ launch, start }: HarnessStart): RunningHarness {
  const ended = new AbortController();
  const activity = createHarnessActivity();
  const { extensions } = launch;
  // Before the harness, so that it loads while the sandbox starts.
  const driver = startTurnDriver(
    { ...(extensions !== undefined && { extensions }) },
    { write: (bytes) => written(child.stdin, bytes), onState: activity.update },
  );
  let child: SandboxedProcess;
  try {
    child = start(launch, ended.signal);
  } catch (error) {
    void driver.stop();
    throw error;
  }
  void forwardOutput(child.stdout, driver.take, ended.signal).then(driver.endOutput);
  const errors = forwardOutput(child.stderr, activity.takeErrors, ended.signal);
  const harness: Harness = { child, driver, life: activity, errors, ended: ended.signal };

  async function stop(): Promise<void> {
    ended.abort();
    child.kill();
    await Promise.all([child.exited, driver.stop()]);
  }

  return {
    async warmUp(workingDirectory) {
      const died = child.exited.then(({ code, signal }) => {
        throw warmUpFailure(`it ended (${signal ?? `exit ${code}`}) ${activity.lastErrors()}`.trimEnd());
      });
      try {
        await Promise.race([driver.warmUp(workingDirectory), driver.broken, died]);
      } catch (error) {
        throw error instanceof SessionError ? error : warmUpFailure(messageOf(error));
      }
    },
    async takeTurn(request, limitMs = startLimitMs) {
      activity.begin();
      driver.begin(taskOf(request), { emit: request.emit, onSession: request.onSession });
      try {
        const verdict = await Promise.race([finished(request, harness), interrupted(request, harness, limitMs)]);
        return await judge(verdict, request, activity);
      } finally {
        await stop();
        // Known for certain only now: the kernel may have ended a command while the agent continued.
        const exceeded = child.exceeded();
        // oxlint-disable-next-line no-unsafe-finally -- it is the reason of whatever else went wrong
        if (exceeded !== null) throw exceededFailure(exceeded);
      }
    },
    hasBegun: activity.started,
    exited: child.exited,
    stop,
  };
}

/**
 * Runs one turn: starts the harness, resumes or opens its session, sends the message, and emits each update as an event, until the
 * turn ends. When this settles, no process of the harness and no thread is left.
 * @throws SessionError agent_crashed, agent_stalled, agent_refused, model_error, turn_too_long, resources_exhausted; the
 * signal's reason if it aborts; errors of `emit` or `onSession`
 */
export async function runTurn(request: TurnRequest): Promise<TurnResult> {
  return startHarness(request).takeTurn(request);
}

/** A turn's fields that do not start its harness. */
type Turn = Omit<TurnRequest, "start">;

/** A running harness with its reader. */
interface Harness {
  readonly child: SandboxedProcess;
  readonly driver: TurnDriver;
  readonly life: HarnessActivity;
  /** Settles when its log is read to its end. */
  readonly errors: Promise<void>;
  /** Aborts when the turn is over. */
  readonly ended: AbortSignal;
}

function taskOf(request: Turn): TurnTask {
  const {
    provider,
    model,
    workingDirectory,
    toolServers = [],
    resume,
    message,
    transcript,
    permission,
    mask,
  } = request;
  const { model: modelOfLaunch, reasoning } = request.launch;
  return {
    providerId: provider.id,
    model,
    launch: { model: modelOfLaunch, reasoning: reasoning ?? null },
    workingDirectory,
    toolServers,
    resume,
    message,
    transcript,
    permission,
    secrets: mask.secrets,
  };
}

/** Settles when the pipe has taken the bytes; if the program has ended, its exit reports that. */
function written(stdin: SandboxedProcess["stdin"], bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    stdin.write(bytes, () => resolve());
  });
}

type Ended = Extract<ConversationResult, { kind: "ended" }>;

/** Waits for the thread's verdict. */
async function finished(request: Turn, { child, driver, life: activity, errors }: Harness): Promise<Ended> {
  const verdict = await Promise.race([driver.verdict, driver.broken]);
  if (verdict.kind === "ended") return verdict;
  if (verdict.kind === "failed") throw await withOutlook(verdict.failure, request);
  // The exit and the log before it give the reason.
  const { code, signal } = await child.exited;
  await errors;
  const exceeded = child.exceeded();
  if (exceeded !== null) throw exceededFailure(exceeded);
  throw lostOrEnded(child, signal ?? `exit ${code}`, activity);
}

/** The harness's process is gone. @param how it ended */
function lostOrEnded(child: SandboxedProcess, how: string, activity: HarnessActivity): SessionError {
  const fault = child.fault();
  return fault === null ? exitFailure(how, activity.lastErrors()) : sandboxLost(fault);
}

/** A failure from the thread: only the gateway knows whether a model's error is transient. */
async function withOutlook(failure: Failure, { traffic }: Turn): Promise<SessionError> {
  const seen = failure.code === "model_error" ? outlookOf(await traffic?.()) : undefined;
  if (seen === undefined) return new SessionError(failure);
  const { lastErrorPasses: passing, retryAfterMs } = seen;
  return new SessionError({ ...failure, passing, retryAfterMs: retryAfterMs ?? undefined });
}

/** The gateway's record of the turn's failing model; undefined if it saw no error. */
function outlookOf<T extends { readonly lastError: string | null }>(traffic: T | undefined): T | undefined {
  return traffic?.lastError === null ? undefined : traffic;
}

/** Never resolves. @throws why the turn ends before the harness's verdict */
async function interrupted(request: Turn, harness: Harness, limitMs: number): Promise<never> {
  const { driver, ended } = harness;
  const signal = AbortSignal.any([request.signal, ended]);
  return Promise.race([
    driver.broken,
    crashed(harness),
    stalled(request, harness, { startLimitMs: limitMs, signal }),
    tooLong(request.limitMs, signal),
    aborted(request, driver),
  ]);
}

/** Time to read the output of an ended program, in case another process keeps it open. */
const lastWordsMs = 60_000;

async function crashed({ child, life: activity, ended }: Harness): Promise<never> {
  const { code, signal } = await child.exited;
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(lostOrEnded(child, signal ?? `exit ${code}`, activity)), lastWordsMs);
    ended.addEventListener("abort", () => clearTimeout(timer), { once: true });
    if (ended.aborted) clearTimeout(timer);
  });
}

/** Never resolves: rejects if there was no sign of life for too long. A running tool is a sign of life. */
function stalled(
  request: Turn,
  { life: activity }: Harness,
  { startLimitMs: toStartMs, signal }: { readonly startLimitMs: number; readonly signal: AbortSignal },
): Promise<never> {
  const toStart = toStartMs < startLimitMs ? toStartMs : Math.max(request.stallMs, toStartMs);
  const limit = (): number => (activity.started() ? request.stallMs : toStart);
  async function problem(): Promise<SessionError | null> {
    const traffic = await request.traffic?.();
    const now = performance.now();
    const quietMs = now - Math.max(activity.lastSign(), traffic?.lastActivity ?? 0);
    const failing = traffic?.lastError ?? activity.modelError();
    // The provider sent the gateway a time to retry: the harness waits for that.
    const waits = (traffic?.lastActivity ?? 0) > now;
    const badMs = now - Math.max(activity.lastSign(), traffic?.lastAnswer ?? 0);
    const goesOn = failing === null ? quietMs < limit() : waits || badMs < Math.min(limit(), modelErrorLimitMs);
    if (activity.toolRuns() || goesOn) return null;
    if (failing === null) return (traffic?.unanswered ?? 0) > 0 ? silenceFailure(quietMs) : stallFailure(quietMs);
    return modelFailure(failing, outlookOf(traffic));
  }
  return new Promise((_, reject) => {
    let timer: NodeJS.Timeout;
    const lookAgain = (): void => {
      timer = setTimeout(() => {
        problem().then((found) => (found === null ? signal.aborted || lookAgain() : reject(found)), reject);
      }, stallCheckMs);
      timer.unref();
    };
    lookAgain();
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  });
}

/** Never resolves: rejects when the turn's time is over. */
function tooLong(limitMs: number, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(tooLongFailure(limitMs)), limitMs);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  });
}

/**
 * Never resolves: when the signal aborts, sends a cancellation, waits a moment, then rejects with the signal's reason.
 */
function aborted(request: Turn, driver: TurnDriver): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => {
      driver.cancel();
      setTimeout(() => reject(request.signal.reason as Error), cancelGraceMs);
    };
    if (request.signal.aborted) stop();
    else request.signal.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Finds failures that the protocol can't report, from the turn's results.
 * @throws SessionError agent_refused, model_error
 */
async function judge(
  { result, anything, modelError }: Ended,
  request: Turn,
  activity: HarnessActivity,
): Promise<TurnResult> {
  if (result.stopReason === "refusal") throw refusalFailure();
  const lastModelError = activity.modelError();
  const traffic = await request.traffic?.();
  const outlook = outlookOf(traffic);
  if (traffic?.answered === 0 && traffic.lastError !== null) throw modelFailure(traffic.lastError, outlook);
  if (modelError !== null) throw modelFailure(modelError, outlook);
  if (!anything) {
    const words = lastModelError ?? (activity.lastErrors() || "the turn ended without a message or a tool call");
    throw modelFailure(words, outlook);
  }
  return result;
}
