import { SessionError, type Failure } from "../../domain/errors/errors.ts";
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
} from "./turn-failures.ts";
import type { TurnTask, Verdict } from "./turn-messages.ts";

/** Time for a harness to end after a cancellation. */
const cancelGraceMs = 300;
/** Time for a harness to answer the first request. */
const startLimitMs = 60_000;
const stallCheckMs = 250;
/** Some harnesses retry a failing model for ever, silently: after this long with nothing but errors the turn ends. */
const modelErrorLimitMs = 30_000;

/**
 * Runs one turn with a harness that speaks the Agent Client Protocol v1 (https://agentclientprotocol.com) on stdin and
 * stdout: starts it, resumes or opens its session, sends the message, and emits each update as an event, until the turn
 * ends. A thread of the turn's own reads its output (turn-thread.ts); this module handles its process, its time limits
 * and its end. When this settles, no process of the harness and no thread is left.
 * @throws SessionError agent_crashed, agent_stalled, agent_refused, model_error, turn_too_long, resources_exhausted,
 * sandbox_unavailable; the signal's reason if it aborts; errors of `emit` or `onSession`
 */
export async function runTurn(request: TurnRequest): Promise<TurnResult> {
  const ended = new AbortController();
  const activity = createHarnessActivity();
  // Before the harness, so that it loads while the sandbox starts.
  const driver = startTurnDriver(taskOf(request), {
    emit: request.emit,
    onSession: request.onSession,
    write: (bytes) => written(child.stdin, bytes),
    onState: activity.update,
  });
  let child: SandboxedProcess;
  try {
    child = request.start(request.launch, ended.signal);
  } catch (error) {
    await driver.stop();
    throw error;
  }
  const harness: Harness = { child, driver, life: activity, ended: ended.signal };
  try {
    const verdict = await Promise.race([finished(request, harness), interrupted(request, harness)]);
    return await judge(verdict, request, activity);
  } finally {
    ended.abort();
    child.kill();
    await Promise.all([child.exited, driver.stop()]);
    // Known for certain only now: the kernel may have ended a command while the agent continued.
    const exceeded = child.exceeded();
    // oxlint-disable-next-line no-unsafe-finally -- it is the reason of whatever else went wrong
    if (exceeded !== null) throw exceededFailure(exceeded);
  }
}

/** A running harness with its reader. */
interface Harness {
  readonly child: SandboxedProcess;
  readonly driver: TurnDriver;
  readonly life: HarnessActivity;
  /** Aborts when the turn is over. */
  readonly ended: AbortSignal;
}

function taskOf(request: TurnRequest): TurnTask {
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
  const { model: modelOfLaunch, reasoning, extensions } = request.launch;
  return {
    providerId: provider.id,
    model,
    launch: { model: modelOfLaunch, reasoning: reasoning ?? null, ...(extensions !== undefined && { extensions }) },
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

type Ended = Extract<Verdict, { kind: "ended" }>;

/** Passes the harness's output to the thread until its verdict. */
async function finished(request: TurnRequest, { child, driver, life: activity, ended }: Harness): Promise<Ended> {
  void forwardOutput(child.stdout, driver.take, ended).then(driver.endOutput);
  const errors = forwardOutput(child.stderr, activity.takeErrors, ended);
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

/** A failure as the thread found it: whether a model's error passes by itself, only the gateway knows. */
async function withOutlook(failure: Failure, { traffic }: TurnRequest): Promise<SessionError> {
  const seen = failure.code === "model_error" ? outlookOf(await traffic?.()) : undefined;
  if (seen === undefined) return new SessionError(failure);
  const { lastErrorPasses: passing, retryAfterMs } = seen;
  return new SessionError({ ...failure, passing, retryAfterMs: retryAfterMs ?? undefined });
}

/** What the gateway knows of the turn's failing model; undefined if it saw no error. */
function outlookOf<T extends { readonly lastError: string | null }>(traffic: T | undefined): T | undefined {
  return traffic?.lastError === null ? undefined : traffic;
}

/** Never resolves. @throws why the turn ends before the harness's verdict */
async function interrupted(request: TurnRequest, harness: Harness): Promise<never> {
  const { driver, ended } = harness;
  const signal = AbortSignal.any([request.signal, ended]);
  return Promise.race([
    driver.broken,
    crashed(harness),
    stalled(request, harness, signal),
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
function stalled(request: TurnRequest, { life: activity }: Harness, signal: AbortSignal): Promise<never> {
  const limit = (): number => (activity.started() ? request.stallMs : Math.max(request.stallMs, startLimitMs));
  async function problem(): Promise<SessionError | null> {
    const traffic = await request.traffic?.();
    const now = performance.now();
    const quietMs = now - Math.max(activity.lastSign(), traffic?.lastActivity ?? 0);
    const failing = traffic?.lastError ?? activity.modelError();
    // The provider told the gateway when to retry: the harness waits for that.
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
function aborted(request: TurnRequest, driver: TurnDriver): Promise<never> {
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
  request: TurnRequest,
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
