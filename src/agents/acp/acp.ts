import { RunError } from "../../domain/errors.ts";
import type { SandboxedProcess } from "../../sandboxes/sandbox.ts";
import type { TurnRequest, TurnResult } from "../harness.ts";
import { handOn } from "./hand-on.ts";
import { createLife, type Life } from "./harness-life.ts";
import { startTurnDriver, type TurnDriver } from "./turn-driver.ts";
import {
  exceededFailure,
  exitFailure,
  modelFailure,
  refusalFailure,
  stallFailure,
  tooLongFailure,
} from "./turn-failures.ts";
import type { TurnTask, Verdict } from "./turn-messages.ts";

/** A harness that was told to cancel gets this long to end by itself. */
const cancelGraceMs = 300;
/** A harness that does not even answer the first request is not coming. */
const startLimitMs = 60_000;
const stallLookMs = 250;
/** Some harnesses try a failing model for ever without a word: after so long with nothing but errors the turn is over. */
const modelErrorLimitMs = 30_000;

/**
 * One turn with any harness that speaks the Agent Client Protocol v1 (https://agentclientprotocol.com) on stdin and stdout:
 * starts it, resumes or opens its session, says the message, and tells each update as an event, until the turn ends.
 * What it writes is read in a thread of the turn's own (turn-thread.ts); here are its process, its clock and its end.
 * No process of the harness, and no thread, is left when this settles.
 * @throws RunError agent_crashed, agent_stalled, agent_refused, model_error, turn_too_long, resources_exhausted; the signal's
 *   reason when it aborts; what `emit` or `onSession` threw
 */
export async function runTurn(request: TurnRequest): Promise<TurnResult> {
  const ended = new AbortController();
  const life = createLife();
  // Before the harness: it loads while the sandbox starts.
  const driver = startTurnDriver(taskOf(request), {
    emit: request.emit,
    onSession: request.onSession,
    write: (bytes) => written(child.stdin, bytes),
    onState: life.hear,
  });
  let child: SandboxedProcess;
  try {
    child = request.start(request.launch, ended.signal);
  } catch (error) {
    await driver.stop();
    throw error;
  }
  const harness: Harness = { child, driver, life, ended: ended.signal };
  try {
    const verdict = await Promise.race([finished(harness), interrupted(request, harness)]);
    return await judge(verdict, request, life);
  } finally {
    ended.abort();
    child.kill();
    await Promise.all([child.exited, driver.stop()]);
    // Known for sure only now: the kernel may have ended a command, and the agent gone on without it.
    const exceeded = child.exceeded();
    // oxlint-disable-next-line no-unsafe-finally -- it is the reason of whatever else went wrong
    if (exceeded !== null) throw exceededFailure(exceeded);
  }
}

/** A program at work, and what reads it. */
interface Harness {
  readonly child: SandboxedProcess;
  readonly driver: TurnDriver;
  readonly life: Life;
  /** Aborts when the turn is over. */
  readonly ended: AbortSignal;
}

function taskOf(request: TurnRequest): TurnTask {
  const { provider, model, workingDirectory, resume, message, transcript, permission, mask } = request;
  const { model: modelOfLaunch, extensions } = request.launch;
  return {
    providerId: provider.id,
    model,
    launch: { model: modelOfLaunch, ...(extensions !== undefined && { extensions }) },
    workingDirectory,
    resume,
    message,
    transcript,
    permission,
    secrets: mask.secrets,
  };
}

/** Settles once the harness's pipe has it; a program that is gone tells of that by its end. */
function written(stdin: SandboxedProcess["stdin"], bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    stdin.write(bytes, () => resolve());
  });
}

type Ended = Extract<Verdict, { kind: "ended" }>;

/** Hands everything that the harness writes to the thread, until that says how the turn ended. */
async function finished({ child, driver, life, ended }: Harness): Promise<Ended> {
  void handOn(child.stdout, driver.take, ended).then(driver.endOutput);
  const errors = handOn(child.stderr, life.takeErrors, ended);
  const verdict = await Promise.race([driver.verdict, driver.broken]);
  if (verdict.kind === "ended") return verdict;
  if (verdict.kind === "failed") throw new RunError(verdict.failure);
  // Why is told by the program's end, and by what it wrote before.
  const { code, signal } = await child.exited;
  await errors;
  const exceeded = child.exceeded();
  if (exceeded !== null) throw exceededFailure(exceeded);
  throw exitFailure(signal ?? `exit ${code}`, life.lastErrors());
}

/** Never resolves. @throws why the turn is over before the harness says so */
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

/** A program that ended says nothing any more, even if another holds its output open. */
const lastWordsMs = 60_000;

async function crashed({ child, life, ended }: Harness): Promise<never> {
  const { code, signal } = await child.exited;
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(exitFailure(signal ?? `exit ${code}`, life.lastErrors())), lastWordsMs);
    ended.addEventListener("abort", () => clearTimeout(timer), { once: true });
    if (ended.aborted) clearTimeout(timer);
  });
}

/** Never resolves: rejects when there was no sign of life for too long. A tool that runs is one. */
function stalled(request: TurnRequest, { life }: Harness, signal: AbortSignal): Promise<never> {
  const limit = (): number => (life.started() ? request.stallMs : Math.max(request.stallMs, startLimitMs));
  async function problem(): Promise<RunError | null> {
    const traffic = await request.traffic?.();
    const now = performance.now();
    const quietMs = now - Math.max(life.lastSign(), traffic?.lastActivity ?? 0);
    const failing = traffic?.lastError ?? life.modelError();
    // The gateway was told when to try again: until then nothing is wrong.
    const waits = (traffic?.lastActivity ?? 0) > now;
    const badMs = now - Math.max(life.lastSign(), traffic?.lastAnswer ?? 0);
    const goesOn = failing === null ? quietMs < limit() : waits || badMs < Math.min(limit(), modelErrorLimitMs);
    if (life.toolRuns() || goesOn) return null;
    return failing === null ? stallFailure(quietMs) : modelFailure(failing);
  }
  return new Promise((_, reject) => {
    let timer: NodeJS.Timeout;
    const lookAgain = (): void => {
      timer = setTimeout(() => {
        problem().then((found) => (found === null ? signal.aborted || lookAgain() : reject(found)), reject);
      }, stallLookMs);
      timer.unref();
    };
    lookAgain();
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  });
}

/** Never resolves: rejects when the turn took all of its time, whatever it does. */
function tooLong(limitMs: number, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(tooLongFailure(limitMs)), limitMs);
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  });
}

/** Never resolves: on the signal asks the harness to cancel, gives it a moment, then rejects with the signal's reason. */
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

/** The protocol has no word for an error: a turn counts by what came of it. @throws RunError agent_refused, model_error */
async function judge({ result, anything, modelError }: Ended, request: TurnRequest, life: Life): Promise<TurnResult> {
  if (result.stopReason === "refusal") throw refusalFailure();
  const said = life.modelError();
  const traffic = await request.traffic?.();
  if (traffic?.answered === 0 && traffic.lastError !== null) throw modelFailure(traffic.lastError);
  if (modelError !== null) throw modelFailure(modelError);
  if (!anything) throw modelFailure(said ?? (life.lastErrors() || "the turn ended without a message or a tool call"));
  return result;
}
