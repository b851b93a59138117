import { SessionError } from "../../domain/errors/errors.ts";
import type { Exceeded } from "../../sandboxes/sandbox.ts";

/** Maximum characters of foreign output in a failure's reason. */
const excerptLimit = 2_000;

/** The harness ended, or sent what can't be parsed. @param error its message ends the sentence */
export function crashFailure(error: Error): SessionError {
  return new SessionError(
    {
      code: "agent_crashed",
      reason: `The agent's program wrote ${error.message}.`,
      retryable: true,
      remedy: "Retry the session; run `offstage doctor` on the server if it fails again.",
    },
    { cause: error },
  );
}

/** The thread that reads the harness's messages failed. @param why the end of a sentence */
export function unreadableFailure(why: string): SessionError {
  return new SessionError({
    code: "agent_crashed",
    reason: `The messages of the agent's program ${why}.`,
    retryable: true,
    remedy: "Retry the session; run `offstage doctor` on the server if it fails again.",
  });
}

/** The harness could not do what makes it ready for a session. @param why a sentence without its end */
export function warmUpFailure(why: string): SessionError {
  return new SessionError({
    code: "agent_crashed",
    reason: `The agent's program could not be made ready: ${why}.`,
    retryable: true,
    remedy: "Run `offstage doctor` on the server if it goes on.",
  });
}

/** The harness exited before the turn was over. @param how the program ended @param message the end of its stderr */
export function exitFailure(how: string, message: string): SessionError {
  return new SessionError({
    code: "agent_crashed",
    reason: `The agent's program ended in the middle of its turn (${how})${message === "" ? "." : `: ${message}`}`,
    retryable: true,
    remedy: "Retry the session; run `offstage doctor` on the server if it fails again.",
  });
}

const usedTooMuch: Readonly<Record<Exceeded, string>> = {
  memory: "more memory",
  processes: "more processes and threads at once",
  disk: "more disk",
  files: "more files",
};

/** A limit of the sandbox ended the turn. */
export function exceededFailure(exceeded: Exceeded): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `The agent, or a command that it ran, used ${usedTooMuch[exceeded]} than its sandbox allows: everything in it was stopped.`,
    retryable: true,
    // A resumed turn may use less memory.
    passing: exceeded === "memory",
    remedy:
      "Ask for less at once, or raise OFFSTAGE_SANDBOX_MEMORY_MB, OFFSTAGE_SANDBOX_PROCESSES, OFFSTAGE_SANDBOX_DISK_MB or OFFSTAGE_SANDBOX_FILES.",
  });
}

/** The harness gave no sign of life. @param quietMs for how long */
export function stallFailure(quietMs: number): SessionError {
  return new SessionError({
    code: "agent_stalled",
    reason: `The agent made no progress for ${Math.round(quietMs / 1_000)} s: no message, no tool call, no running command.`,
    retryable: true,
    passing: true,
    remedy: "Retry the session; if the model is slow, raise OFFSTAGE_STALL_SECONDS.",
  });
}

/** A model has a request and says nothing. @param quietMs for how long */
export function silenceFailure(quietMs: number): SessionError {
  return new SessionError({
    code: "model_error",
    reason: `The model has not answered for ${Math.round(quietMs / 1_000)} s.`,
    retryable: true,
    passing: true,
    remedy: "If the model takes longer than that to answer, raise OFFSTAGE_STALL_SECONDS.",
  });
}

/** The turn took longer than its limit. @param limitMs the limit */
export function tooLongFailure(limitMs: number): SessionError {
  return new SessionError({
    code: "turn_too_long",
    reason: `The turn took longer than ${Math.round(limitMs / 60_000)} minutes.`,
    retryable: true,
    remedy: "Ask for less at once, or raise OFFSTAGE_TURN_MINUTES; the work so far is kept.",
  });
}

/** The model refused the request. */
export function refusalFailure(): SessionError {
  return new SessionError({
    code: "agent_refused",
    reason: "The model refused to continue this task.",
    retryable: false,
    remedy: "Rephrase the task, or choose another model.",
  });
}

/** The gateway's record of a model's last error. */
export interface ModelOutlook {
  readonly lastErrorPasses: boolean;
  readonly retryAfterMs: number | null;
}

/**
 * The model failed.
 * @param message message of the model's server, or of the harness
 * @param outlook undefined: no gateway saw the error, so that it is unknown whether it passes
 */
export function modelFailure(message: string, outlook?: ModelOutlook): SessionError {
  return new SessionError({
    code: "model_error",
    reason: `The model answered only errors: ${message.slice(0, excerptLimit).toWellFormed()}`,
    retryable: true,
    passing: outlook?.lastErrorPasses ?? false,
    remedy: "Check the model's name, its key and its quota, then retry.",
    retryAfterMs: outlook?.retryAfterMs ?? undefined,
  });
}
